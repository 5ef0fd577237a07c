"""Subject: one stage as the rules see it, with what is known of the module around it.

`Settings` gives effective values cheaply: experiments have thousands of stages, and every rule
asks for several values of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from agentc.backend_api import BackendTable, EnvironmentBackend, ServerBackend, StageBackend
from agentc.ir.module import Module, Prompt, Resource, Stage
from agentc.kinds import kind_named
from agentc.kinds.field import Field, Json
from agentc.passes.checks.surroundings import Surroundings
from agentc.passes.place import stage_span

_ABSENT = object()


class Settings:
    """Effective values of a stage or resource by dotted path: the spec's, else the default.

    A path that nothing declares is None, so that rules may ask for what only some backends have.
    """

    __slots__ = ("_defaults", "entry")

    def __init__(self, entry: Stage | Resource, defaults: Mapping[str, Json]) -> None:
        self.entry = entry
        self._defaults = defaults

    @property
    def name(self) -> str:
        """The entry's name, for messages."""
        return self.entry.id if isinstance(self.entry, Stage) else self.entry.name

    def get(self, path: str) -> Json:
        value = self._given(path)
        if value is not _ABSENT:
            return value  # type: ignore[return-value]
        first, _, rest = path.partition(".")
        # The fields of a nullable group (`lora.rank`) have values only where the group is given.
        if rest and self._defaults.get(first, _ABSENT) is None and self._given(first) is _ABSENT:
            return None
        return self._defaults.get(path)

    def number(self, path: str) -> float | None:
        value = self.get(path)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def integer(self, path: str) -> int | None:
        value = self.get(path)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, path: str) -> str | None:
        value = self.get(path)
        return value if isinstance(value, str) else None

    def texts(self, path: str) -> tuple[str, ...]:
        value = self.get(path)
        return tuple(str(item) for item in value) if isinstance(value, list) else ()

    def given(self, path: str) -> bool:
        """Whether the spec sets it, for this stage or under `defaults:`."""
        return self._given(path) is not _ABSENT

    def shown(self, path: str) -> str:
        """A value with its place, for notes: "`expert`: `limit` is 3 (line 12)"."""
        text = f"`{self.name}`: `{path}` is {quoted(self.get(path))}"
        if not self.given(path):
            return f"{text} by default"
        return f"{text} ({place(self.entry, path)})"

    def _given(self, path: str) -> object:
        first, _, rest = path.partition(".")
        entry = self.entry
        if first == "placement" and isinstance(entry, Stage):
            found = entry.placement.get(rest)
            return _ABSENT if found is None or found.json is None else found.json
        value = entry.fields.get(first)
        if value is None:
            value = entry.options.get(first)
        if value is None and isinstance(entry, Resource):
            value = entry.sharing.get(first)
        if value is None:
            return _ABSENT
        node: Json = value.json
        for part in rest.split(".") if rest else ():
            if not isinstance(node, dict) or part not in node:
                return _ABSENT
            node = node[part]
        return node


@dataclass(frozen=True, slots=True)
class Subject:
    """A stage under examination; `around` and `servers` were computed once for the module."""

    stage: Stage
    settings: Settings
    module: Module
    table: BackendTable
    around: Surroundings
    servers: Mapping[str, tuple[ServerBackend, Settings]]

    def producers(self, role: str) -> Iterator[Settings]:
        """The settings of the stages that an input names, in order."""
        for stage_id in self.stage.inputs.get(role, ()):
            stage = self.module.stages.get(stage_id)
            if stage is not None:
                yield settings_of(stage, self.table)

    def environment(self, stage: Stage | None = None) -> EnvironmentBackend | None:
        """The environment's declaration: this stage's, or another's."""
        entry = self.module.environments.get((stage or self.stage).uses.get("environment", ""))
        found = None if entry is None else self.table.backends.get(entry.backend)
        if entry is None or not isinstance(found, EnvironmentBackend):
            return None
        if found.configured is None:
            return found
        return found.under({name: value.json for name, value in entry.fields.items()})

    def expected_tasks(self) -> Mapping[str, tuple[float, float]]:
        """By split, the tasks that this stage's environment states, and how many times more there
        may be (1 where the number is fixed); empty where it states nothing."""
        entry = self.module.environments.get(self.stage.uses.get("environment", ""))
        declared = self.environment()
        if entry is None or declared is None or declared.expected_tasks is None:
            return {}
        try:
            return declared.expected_tasks({n: v.json for n, v in entry.fields.items()})
        except Exception:
            # It is written for settings as an identity has them; those of a spec may be left out,
            # stand in another form, or have errors of their own.
            return {}

    def server(self) -> tuple[ServerBackend, Settings] | None:
        """The server of this stage with its settings."""
        return self.servers.get(self.stage.uses.get("server", ""))

    def prompt(self, stage: Stage | None = None) -> Prompt | None:
        """The prompt of this stage, or of another."""
        return self.module.prompts.get((stage or self.stage).uses.get("prompt", ""))

    def model(self, role: str = "") -> Settings | None:
        """The model that this stage (or the first input of a role) descends from."""
        start = self.stage.id if not role else next(iter(self.stage.inputs.get(role, ())), "")
        root = self.around.roots.get(start)
        return None if root is None else settings_of(root, self.table)

    def scratch_model(self, role: str = "") -> Settings | None:
        """The same, where this spec makes it from nothing, so that its shape is known."""
        found = self.model(role)
        if found is None or not isinstance(found.entry, Stage):
            return None
        return found if found.entry.backend == "model.scratch" else None


def settings_of(stage: Stage, table: BackendTable) -> Settings:
    """Effective values of a stage: kind fields and backend options."""
    backend = table.backends.get(stage.backend)
    options = backend.options if isinstance(backend, StageBackend) else ()
    return Settings(stage, _defaults(stage.kind, options))


def servers_of(module: Module, table: BackendTable) -> dict[str, tuple[ServerBackend, Settings]]:
    """Every server of a module with its settings."""
    found: dict[str, tuple[ServerBackend, Settings]] = {}
    for name, entry in module.servers.items():
        backend = table.backends.get(entry.backend)
        if isinstance(backend, ServerBackend):
            found[name] = (backend, Settings(entry, _flat(backend.fields)))
    return found


def place(entry: Stage | Resource, path: str) -> str:
    """Where a setting was written: "line 12"; with the file's name in a file of its own."""
    span = stage_span(entry, path)
    if span.source is entry.origin.span.source:
        return f"line {span.line}"
    return f"{span.source.name}, line {span.line}"


def quoted(value: Json) -> str:
    """A value for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"`{value}`"
    if isinstance(value, list):
        return f"[{', '.join(quoted(item) for item in value)}]"
    return str(value)


def _defaults(kind_name: str, options: tuple[Field, ...]) -> Mapping[str, Json]:
    return {**_of_kind(kind_name), **_flat(options)} if options else _of_kind(kind_name)


@lru_cache(maxsize=64)
def _of_kind(name: str) -> Mapping[str, Json]:
    kind = kind_named(name)
    return {} if kind is None else _flat(kind.fields)


def _flat(fields: tuple[Field, ...], prefix: str = "") -> dict[str, Json]:
    found: dict[str, Json] = {}
    for field in fields:
        found[prefix + field.name] = None if field.required else field.default  # type: ignore[assignment]
        found |= _flat(field.fields, f"{prefix}{field.name}.")
    return found
