"""Subject: one stage as the rules see it, with what is known of the module around it.

`Settings` gives effective values cheaply: experiments have thousands of stages, and every rule
asks for several values of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar, cast

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    ExpectedExpert,
    ServerBackend,
    StageBackend,
)
from agentc.backend_api.view import ABSENT, Absent, SettingTable, effective
from agentc.ir.module import Body, Module, Prompt, Resource, Stage, stage_span
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.passes.checks.model_folders import LocalModel, read_model_folders
from agentc.passes.checks.module_analysis import ModuleAnalysis, survey
from agentc.source.files import Boundary

_T = TypeVar("_T")


class Settings:
    """Effective values of a stage or resource by dotted path: the spec's, else the default.

    A path that nothing declares is None, so that rules may ask for what only some backends have.
    """

    __slots__ = ("_asked", "_derived", "_tables", "entry")

    def __init__(
        self,
        entry: Stage | Resource,
        *tables: SettingTable,
        asked: dict[str, Json] | None = None,
    ) -> None:
        """`asked` is what was looked up for stages of the same body under these tables."""
        self.entry = entry
        self._tables = tables
        self._asked: dict[str, Json] = {} if asked is None else asked
        self._derived: dict[Callable[[Settings], object], object] = {}

    @property
    def name(self) -> str:
        """The entry's name, for messages."""
        return self.entry.id if isinstance(self.entry, Stage) else self.entry.name

    @property
    def owner(self) -> Body | Settings:
        """What has these values: the body of a stage, or the settings of a resource themselves."""
        return self.entry.body if isinstance(self.entry, Stage) else self

    def get(self, path: str) -> Json:
        asked = self._asked
        if path not in asked:
            asked[path] = self._find_value(path)
        return asked[path]

    def derive(self, make: Callable[[Settings], _T]) -> _T:
        """What a function makes of these settings alone, made once: many stages ask it of the one
        model that they descend from."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return cast(_T, self._derived[make])

    def _find_value(self, path: str) -> Json:
        for table in self._tables:
            setting = table.find(path)
            if setting is not None:
                return effective(setting, self._set_value)
        value = self._set_value(path.split("."))
        return None if isinstance(value, Absent) else value

    def declares(self, path: str) -> bool:
        """Whether the kind, or the backend, has such a setting."""
        return any(table.find(path) is not None for table in self._tables)

    def with_options(self, options: SettingTable) -> Settings:
        """The same under another backend, whose options these are."""
        return Settings(self.entry, self._tables[0], options)

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

    def is_set(self, path: str) -> bool:
        """Whether the spec sets it, for this stage or under `defaults:`."""
        return self._set_value(path.split(".")) is not ABSENT

    def note(self, path: str) -> str:
        """A value with its place, for notes: "`expert`: `limit` is 3 (line 12)"."""
        text = f"`{self.name}`: `{path}` is {quoted(self.get(path))}"
        if not self.is_set(path):
            return f"{text} by default"
        return f"{text} ({place(self.entry, path)})"

    def _set_value(self, parts: Sequence[str]) -> Json | Absent:
        first, *rest = parts
        entry = self.entry
        if first == "placement" and isinstance(entry, Stage):
            found = entry.placement.get(".".join(rest))
            return ABSENT if found is None or found.json is None else found.json
        value = entry.fields.get(first)
        if value is None:
            value = entry.options.get(first)
        if value is None and isinstance(entry, Resource):
            value = entry.sharing.get(first)
        if value is None:
            return ABSENT
        node: Json = value.json
        for part in rest:
            if not isinstance(node, dict) or part not in node:
                return ABSENT
            node = node[part]
        return node


@dataclass(frozen=True, slots=True)
class PlacedSettings:
    """Settings with what `place` says of the machine, and some of them changed to see what then."""

    settings: Settings
    place: Settings
    changes: Mapping[str, Json]

    def get(self, path: str) -> Json:
        """A setting in effect, as the changes have it."""
        if path in self.changes:
            return self.changes[path]
        return (self.place if path.startswith("placement.") else self.settings).get(path)


@dataclass(frozen=True, slots=True)
class StageContext:
    """A stage under examination; `around`, `servers` and `folders` (what was read of the model
    directories, by stage id) were computed once for the module; `boundary` says which files its
    settings may name."""

    stage: Stage
    settings: Settings
    of_stages: Mapping[str, Settings]
    module: Module
    table: BackendTable
    around: ModuleAnalysis
    servers: Mapping[str, tuple[ServerBackend, Settings]]
    folders: Mapping[str, LocalModel]
    boundary: Boundary
    _derived: dict[Callable[[StageContext], object], object] = field(default_factory=dict)

    def derive(self, make: Callable[[StageContext], _T]) -> _T:
        """What a function makes of this stage, made once: many rules ask for it."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return cast(_T, self._derived[make])

    def producers(self, role: str) -> Iterator[Settings]:
        """The settings of the stages that an input names, in order."""
        for stage_id in self.stage.inputs.get(role, ()):
            stage = self.module.stages.get(stage_id)
            if stage is not None:
                yield self.of_stages[stage.id]

    def environment(self, stage: Stage | None = None) -> EnvironmentBackend | None:
        """The environment's declaration: this stage's, or another's."""
        entry = self.module.environments.get((stage or self.stage).uses.get("environment", ""))
        found = None if entry is None else self.table.backends.get(entry.backend)
        if entry is None or not isinstance(found, EnvironmentBackend):
            return None
        return found.of_entry(entry)

    def expected_tasks(self, stage: Stage | None = None) -> Mapping[str, tuple[float, float]]:
        """By split, the tasks that a stage's environment states, and how many times more there
        may be (1 where the number is fixed); empty where it states nothing."""
        entry = self.module.environments.get((stage or self.stage).uses.get("environment", ""))
        declared = self.environment(stage)
        return {} if entry is None or declared is None else declared.tasks_of(entry)

    def expected_expert(self) -> ExpectedExpert | None:
        """What an expert's episode is like in this stage's environment, where that states it."""
        entry = self.module.environments.get(self.stage.uses.get("environment", ""))
        declared = self.environment()
        return None if entry is None or declared is None else declared.expert_of(entry)

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
        return None if root is None else self.of_stages[root.id]

    def scratch_model(self, role: str = "") -> Settings | None:
        """The same, where this spec makes it from nothing, so that its shape is known."""
        found = self.model(role)
        return found if found is not None and is_made(found) else None


def is_made(model: Settings) -> bool:
    """Whether a model is one that the spec makes from nothing."""
    return isinstance(model.entry, Stage) and model.entry.backend == "model.scratch"


def subjects_of(module: Module, table: BackendTable, boundary: Boundary) -> Iterator[StageContext]:
    """Every stage of a module as the rules see it, with what the boundary lets them read."""
    around, servers = survey(module), servers_of(module, table)
    folders = read_model_folders(module, boundary)
    read = _Readings(table)
    of_stages = {name: read.settings(stage) for name, stage in module.stages.items()}
    for stage in module.stages.values():
        yield StageContext(
            stage=stage,
            settings=of_stages[stage.id],
            of_stages=of_stages,
            module=module,
            table=table,
            around=around,
            servers=servers,
            folders=folders,
            boundary=boundary,
        )


@dataclass(frozen=True, slots=True)
class _Readings:
    """Makes settings of stages: one table for each backend, one look-up for each body."""

    backends: BackendTable
    options: dict[str, SettingTable] = field(default_factory=dict)
    asked: dict[Body, dict[str, Json]] = field(default_factory=dict)

    def settings(self, stage: Stage) -> Settings:
        """Effective values of a stage: kind fields and backend options."""
        if stage.backend not in self.options:
            backend = self.backends.backends.get(stage.backend)
            found = backend.options if isinstance(backend, StageBackend) else ()
            self.options[stage.backend] = SettingTable(found)
        asked = self.asked.setdefault(stage.body, {})
        return Settings(stage, _of_kind(stage.kind), self.options[stage.backend], asked=asked)


def servers_of(module: Module, table: BackendTable) -> dict[str, tuple[ServerBackend, Settings]]:
    """Every server of a module with its settings."""
    found: dict[str, tuple[ServerBackend, Settings]] = {}
    for name, entry in module.servers.items():
        backend = table.backends.get(entry.backend)
        if isinstance(backend, ServerBackend):
            found[name] = (backend, Settings(entry, SettingTable(backend.fields)))
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


@lru_cache(maxsize=64)
def _of_kind(name: str) -> SettingTable:
    kind = kind_named(name)
    return SettingTable(() if kind is None else kind.fields)
