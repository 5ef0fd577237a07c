"""Examples of kinds and settings as `agentc explain` prints them, and a spec that has what they
name. A test compiles those of all kinds together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import yaml

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    OptionView,
    ServerBackend,
    StageBackend,
    entry_fields,
)
from agentc.backend_api.honoured import SampleContext, view_of
from agentc.backend_api.view import find_setting
from agentc.ir.module import ALGORITHM
from agentc.kinds import KINDS, MODEL_KIND, Kind, kind_named
from agentc.kinds.artifacts import ArtifactType
from agentc.kinds.field import Field, Json

SCAFFOLD = """\
agentc: 1
name: examples
environments:
  world: {backend: textcraft}
  hidden: {backend: twenty_questions}
  sums:
    backend: verifiers
    taskset: sums
    splits: {train: {range: [0, 9]}, test: {range: [9, 12]}}
servers: {local: {backend: transformers}}
prompts: {react: {instruction: Craft the goal., reply_format: react}}
models: {base: {backend: scratch, chat_format: chatml, corpus: expert}}
stages:
  head_critic: {kind: critic, model: base, data: pair, parameterisation: value_head, beta: 1,
    lr: 1e-6, global_batch: 8, max_length: 1024}
  evaluate_base: {kind: evaluate, model: base, environment: world, split: test}
"""
"""The entries that examples name. Stages name each other: `expert` is the example of that kind."""


def example_of(kind: Kind) -> str | None:
    """The example as it stands in a spec, in block style; None where a kind needs no stage."""
    return in_block_style(kind.name, yaml.safe_load(kind.example)) if kind.example else None


def example_with(kind: Kind, path: str, table: BackendTable) -> str | None:
    """The example of a kind with another value of a setting than its default, on the default
    backend if that reads it then; where the setting depends on another one, with that too. None
    where no such stage was found."""
    setting = find_setting(kind.fields, path)
    if not kind.example or setting is None:
        return None
    plain: dict[str, Json] = yaml.safe_load(kind.example)
    backends = sorted(
        table.stage_backends(kind.name), key=lambda each: each.id != kind.default_backend
    )
    for beside in _companions(kind, path):
        for backend in backends:
            written = [plain[path]] if setting.declared.required and path in plain else []
            values: list[Json] = [*written, *_other_values(setting.declared)]
            if path == ALGORITHM and backend.algorithms:
                values = [*backend.algorithms]
            for value in values:
                added = _merged(beside, _nested(path, value))
                for needed in ({}, _needed(backend)):
                    whole = _merged(_merged(plain, needed), added)
                    if _is_read(backend, kind, whole, path):
                        stage = {key: plain[key] for key in plain if key == "kind"}
                        if backend.id != kind.default_backend:
                            stage |= _chosen_by(backend)
                        return in_block_style(kind.name, {**stage, **_merged(needed, added)})
    return None


def _needed(backend: StageBackend) -> dict[str, Json]:
    """What the backend's own example adds to that of its kind."""
    own: dict[str, Json] = yaml.safe_load(backend.example or "{}")
    return {name: value for name, value in own.items() if value is not None and name != "options"}


def values_for_rounds(kind: Kind, path: str, field: Field) -> list[Json]:
    """Two numbers for a setting: that of the kind's example, or the default, and another one."""
    kinds = field.schema.get("type")
    types = kinds if isinstance(kinds, list) else [kinds]
    if not {"number", "integer"} & {str(name) for name in types} or field.fields:
        return []
    plain = _number(yaml.safe_load(kind.example or "{}").get(path))
    first = plain if isinstance(plain, int | float) else field.default
    others = [value for value in _other_values(field) if value != first]
    if isinstance(first, bool) or not isinstance(first, int | float):
        return others[:2]
    return [first, first * 5] if _within(field.schema, first * 5) else [first, *others[:1]]


def option_example(backend: StageBackend, path: str) -> str | None:
    """A stage of the backend's kind with another value of one of its own options."""
    kind, setting = kind_named(backend.kind), find_setting(backend.options, path)
    if kind is None or not kind.example or setting is None:
        return None
    plain = _with_example(kind, backend)
    needed = plain.pop("options", {})
    assert isinstance(needed, dict)
    algorithms: list[dict[str, Json]] = [{ALGORITHM: each} for each in backend.algorithms]
    for chosen, beside in product(
        algorithms or [_chosen_by(backend)], ({}, *_beside(backend.options, path))
    ):
        for value in _other_values(setting.declared):
            added = _merged(_merged(needed, beside), _nested(path, value))
            if _is_read(backend, kind, _merged({**plain, **chosen}, added), path):
                own: dict[str, Json] = {"kind": kind.name, **chosen}
                return in_block_style(kind.name, {**own, "options": added})
    return None


def _chosen_by(backend: StageBackend) -> dict[str, Json]:
    """The key by which a stage chooses the backend: its algorithm, or the backend itself."""
    if backend.algorithms:
        return {ALGORITHM: backend.algorithms[0]}
    return {"backend": short_name(backend)}


def backend_example(backend: StageBackend) -> str | None:
    """The example of the backend's kind, on it; of a model, whose backends have little in common,
    the name and what the backend needs."""
    kind = kind_named(backend.kind)
    if kind is None or not (kind.example or backend.example):
        return None
    whole = _with_example(kind, backend)
    named: dict[str, Json] = {"kind": kind.name} if kind.name != MODEL_KIND else {}
    named |= _chosen_by(backend)
    return in_block_style(kind.name, {**named, **{k: v for k, v in whole.items() if k != "kind"}})


def _with_example(kind: Kind, backend: StageBackend) -> dict[str, Json]:
    """The example of a kind, with what the backend's own adds to it, or takes away by null."""
    plain: dict[str, Json] = yaml.safe_load(kind.example or "{}")
    own: dict[str, Json] = yaml.safe_load(backend.example or "{}")
    if kind.name == MODEL_KIND:
        return own
    return {name: value for name, value in {**plain, **own}.items() if value is not None}


def _beside(fields: Sequence[Field], path: str) -> Iterator[dict[str, Json]]:
    for field in fields:
        if field.name != path.partition(".")[0]:
            yield from (_nested(field.name, value) for value in _other_values(field))


def entry_example(backend: EnvironmentBackend | ServerBackend, path: str = "") -> str | None:
    """An entry of `environments:` or `servers:` on the backend; with another value of a setting,
    and of one that it depends on. None where no such entry was found."""
    family, _, short = backend.id.partition(".")
    section = {"env": "environments", "serve": "servers"}[family]
    plain: dict[str, Json] = yaml.safe_load(backend.example or "{}")
    values = plain if not path else _entry_with(backend, plain, path)
    if values is None:
        return None
    return f"{section}:\n  mine: {_flow({'backend': short, **values})}\n"


def _entry_with(
    backend: EnvironmentBackend | ServerBackend, plain: dict[str, Json], path: str
) -> dict[str, Json] | None:
    fields = entry_fields(backend)
    setting = find_setting(fields, path)
    if setting is None:
        return None
    if path in plain:
        return plain
    if path.partition(".")[0] not in {field.name for field in backend.fields}:
        return _merged(plain, _nested(path, _other_values(setting.declared)[0]))
    for beside in ({}, *_beside(backend.fields, path)):
        for value in _other_values(setting.declared):
            values = _merged(_merged(plain, beside), _nested(path, value))
            if _is_leased(backend, values, path):
                return values
    return None


def _is_leased(
    backend: EnvironmentBackend | ServerBackend, values: Mapping[str, Json], path: str
) -> bool:
    """Whether the backend reads the setting of such an entry, and takes all of it."""
    numbers = {name: _number(value) for name, value in values.items()}
    view = OptionView(table=backend.fields, values=numbers, files=lambda _: b"sample")
    try:
        backend.lease(view)
    except Exception:  # the sample of a file may be no file of that backend
        return False
    ignored = [name for name in view.set_paths() if name not in view.read]
    below = any(name.startswith(f"{path}.") for name in view.read)
    return (path in view.read or below) and not view.refusals and not ignored


def short_name(backend: StageBackend) -> str:
    """What a spec writes for the backend: `trl` for `trl.sft`, `scratch` for `model.scratch`."""
    return backend.id.removesuffix(f".{backend.kind}").removeprefix(f"{backend.kind}.")


def _companions(kind: Kind, path: str) -> Iterator[dict[str, Json]]:
    """Nothing, then each optional input, then one other value of each other setting: what a setting
    may depend on."""
    yield {}
    for role in kind.roles:
        if role.optional:
            yield {role.name: _maker(role.accepts[0])}
    for field in kind.fields:
        for inner in field.fields or (field,):
            other = field.name if inner is field else f"{field.name}.{inner.name}"
            if other != path:
                yield from (_nested(other, value) for value in _other_values(inner))


def _maker(artifact: ArtifactType) -> str:
    """The example that makes an artifact."""
    names = [kind.name for kind in KINDS if kind.produces is artifact and kind.example]
    return "base" if names[0] == MODEL_KIND else names[0]


def _is_read(backend: StageBackend, kind: Kind, stage: Mapping[str, Json], path: str) -> bool:
    """Whether the backend reads the setting of such a stage, and takes its value."""
    known = {field.name for field in (*kind.fields, *backend.options)}
    values = {name: _number(value) for name, value in stage.items() if name in known}
    roles = [role.name for role in kind.roles if role.name in stage and backend.takes(role.name)]
    inputs = dict.fromkeys(roles, ("sample",))
    view = view_of(backend, values, inputs, lambda _: b"sample")
    for job in backend.lower(view, SampleContext()):
        view.absorb(job.view)
    refused = {refusal.path for refusal in view.refusals}
    below = any(name.startswith(f"{path}.") for name in view.read)
    return (path in view.read or below) and path not in refused


def _number(value: Json) -> Json:
    """`2e-5`, which is text to this reader of YAML and a number to a spec's."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _other_values(field: Field) -> list[Json]:
    """Values that are valid and not the default; of a group, one of its settings."""
    if field.fields:
        return [{inner.name: value} for inner in field.fields for value in _other_values(inner)[:1]]
    schema, default = field.schema, None if field.required else field.default
    words = schema.get("enum")
    if isinstance(words, list):
        return [word for word in words if word != default]
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "boolean":
        return [default is not True]
    if kind in ("integer", "number"):
        return _other_numbers(field, whole=kind == "integer")
    if kind == "array":
        items = schema.get("items")
        assert isinstance(items, dict)
        if isinstance(items.get("enum"), list):
            return [list(items["enum"])]  # type: ignore[arg-type]
        return [["text"] if items.get("type") == "string" else [0, 1]]
    if kind == "object":
        return [{"name": 1}]
    if field.name == "split":
        return ["test"]
    return ["owner/name" if "pattern" in schema and default is None else default or "text"]  # type: ignore[list-item]


def _other_numbers(field: Field, *, whole: bool) -> list[Json]:
    schema, default = field.schema, field.default
    start = default if isinstance(default, int | float) else schema.get("minimum", 1)
    assert isinstance(start, int | float)
    candidates: tuple[float, ...] = (start * 2, start / 2, start + 1, start + 0.1, start - 0.1)
    if whole:
        candidates = tuple(int(number) for number in (start * 2, start + 1))
    return [each for each in candidates if each != default and _within(schema, each)]


def _within(schema: Mapping[str, Json], number: float) -> bool:
    low, high = schema.get("minimum", number), schema.get("maximum", number)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    return (
        low <= number <= high
        and (not isinstance(above, int | float) or number > above)
        and (not isinstance(below, int | float) or number < below)
    )


def _nested(path: str, value: Json) -> dict[str, Json]:
    name, _, below = path.partition(".")
    return {name: _nested(below, value) if below else value}


def _merged(base: Mapping[str, Json], more: Mapping[str, Json]) -> dict[str, Json]:
    """`base` with `more` in it, mappings key by key."""
    result = dict(base)
    for name, value in more.items():
        known = result.get(name)
        both = isinstance(known, dict) and isinstance(value, dict)
        result[name] = _merged(known, value) if both else value  # type: ignore[arg-type]
    return result


def in_block_style(name: str, values: Mapping[str, Json]) -> str:
    """An entry of `stages:`, or of `models:`."""
    section, entry = ("models", "base") if name == MODEL_KIND else ("stages", name)
    lines = [f"    {key}: {_flow(value)}" for key, value in values.items()]
    return "\n".join([f"{section}:", f"  {entry}:", *lines, ""])


def _flow(value: object) -> str:
    written = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    return written.removesuffix("\n").removesuffix("\n...").removesuffix("\n")
