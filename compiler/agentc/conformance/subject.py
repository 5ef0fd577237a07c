"""BackendUnderTest: the backend that the kit checks, with values to start from, and valid values
that differ from one, for flipping its settings."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.backend_api import Backend, StageBackend
from agentc.conformance.bench import Bench, LoweringOutcome
from agentc.kinds import kind_named
from agentc.kinds.field import Field
from agentc.kinds.table import TRAINERS


def sample(field: Field) -> Any:
    """A valid value of a field that must be given."""
    return next(other_values(field, None))


def leaves(table: tuple[Field, ...], prefix: str = "") -> Iterator[tuple[str, Field, str]]:
    """(dotted path, field, identity class) of every leaf; a class holds for what is below it."""
    for field in table:
        path = f"{prefix}{field.name}"
        if field.fields:
            for inner, leaf, identity in leaves(field.fields, f"{path}."):
                yield inner, leaf, identity if field.identity == "semantic" else field.identity
        else:
            yield path, field, field.identity


def other_values(field: Field, value: Any) -> Iterator[Any]:
    """Valid values other than `value`."""
    schema = field.schema
    choices = schema.get("enum")
    if isinstance(choices, list):
        yield from (choice for choice in choices if choice not in (value, None))
        return
    types = schema.get("type", "string")
    match types[0] if isinstance(types, list) else types:
        case "boolean":
            # None lets the backend choose: either value may be what it chooses.
            yield from (True, False) if value is None else (not value,)
        case "integer":
            yield from _numbers(schema, value, 1)
        case "number":
            yield from _numbers(schema, value, 0.125)
        case "array":
            yield from ([item] for item in _items(schema) if [item] != value)
        case "object":
            yield {"--flag": "1"}
        case _:
            yield from (text for text in _texts(schema) if text != value)


def _numbers(schema: Mapping[str, Any], value: Any, step: float) -> Iterator[Any]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    base = value if isinstance(value, (int, float)) else low
    for candidate in (base * 2, base + step, base / 2, low + step, base + 64):
        whole = int(candidate) if schema["type"] == "integer" or step == 1 else candidate
        above = schema.get("exclusiveMinimum")
        fits = whole >= schema.get("minimum", whole) and whole <= schema.get("maximum", whole)
        if fits and whole != value and (above is None or whole > above):
            yield whole


def _items(schema: Mapping[str, Any]) -> list[Any]:
    items: Mapping[str, Any] = schema.get("items") or {}
    words = items.get("enum")
    return words if isinstance(words, list) else [_item(items)]


def _item(items: Mapping[str, Any]) -> Any:
    if items.get("type") == "object":
        return dict.fromkeys(items.get("required", ()), "sample")
    return items.get("minimum", 0) if items.get("type") == "integer" else "sample"


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    pattern = schema.get("pattern", "")
    if "http" in pattern:
        yield from ("https://models.example/v1", "https://other.example/v1")
    elif "40" in pattern:
        yield from ("0123456789" * 4, "abcdef0123" * 4)
    else:
        yield from ("sample", "other")


def with_value(values: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one dotted path set."""
    result = copy.deepcopy(dict(values))
    node = result
    *groups, last = path.split(".")
    for name in groups:
        node = node.setdefault(name, {})
    node[last] = value
    return result


def value_at(values: Mapping[str, Any], path: str, field: Field) -> Any:
    """What is given at a path, else the default."""
    node: Any = values
    for part in path.split("."):
        if not isinstance(node, dict) or part not in node:
            return None if field.required else field.default
        node = node[part]
    return node


TYPICAL: Mapping[str, Any] = {"lr": 1e-3, "global_batch": 8, "max_length": 64, "beta": 0.1}
"""Settings that trainings need, with values that any trainer lowers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendUnderTest:
    """A backend on its bench.

    `given` are values that the backend needs to lower at all, beyond what its kind's stages set;
    `tried` are values of settings, by dotted path, that the kit could not guess (a setting whose
    value must be a file, say). `python` maps the SHA-256 of a lock to the interpreter of that
    software stack, where it is built: programs are tried in it.
    """

    backend: Backend
    bench: Bench
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tried: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)
    pythons: Mapping[str, Path] = dataclasses.field(default_factory=dict)

    @property
    def declared_fields(self) -> tuple[Field, ...]:
        """What the backend itself declares: options of a stage's backend, fields of the others."""
        backend = self.backend
        return backend.options if isinstance(backend, StageBackend) else backend.fields

    @property
    def table(self) -> tuple[Field, ...]:
        """All settings: those of the kind, and the backend's own."""
        if not isinstance(self.backend, StageBackend):
            return self.declared_fields
        kind = kind_named(self.backend.kind)
        return (*(() if kind is None else kind.fields), *self.declared_fields)

    @property
    def start(self) -> dict[str, Any]:
        """The settings that everything starts from."""
        kind = self.backend.kind if isinstance(self.backend, StageBackend) else ""
        table = self.table
        required = {one.name: sample(one) for one in table if one.required}
        usual = {one.name: TYPICAL[one.name] for one in table if one.name in TYPICAL}
        return {**required, **(usual if kind in TRAINERS else {}), **self.given}

    def lower(self, values: Mapping[str, Any], **neighbours: Any) -> LoweringOutcome:
        """What the compiler makes of the backend with these settings."""
        if isinstance(self.backend, StageBackend):
            return self.bench.stage(self.backend, values, **neighbours)
        return self.bench.resource(self.backend, values)

    def flips(self, field: Field, path: str, values: Mapping[str, Any]) -> Iterator[Any]:
        """Values of a setting other than the one in `values`."""
        if path in self.tried:
            yield from self.tried[path]
        else:
            yield from other_values(field, value_at(values, path, field))

    def rivals(self) -> list[str]:
        """Ids of the other installed backends that could do the same work."""
        table = self.bench.table
        if isinstance(self.backend, StageBackend):
            peers: tuple[Backend, ...] = table.stage_backends(self.backend.kind)
        else:
            peers = table.servers()
        return [peer.id for peer in peers if peer.id != self.backend.id]
