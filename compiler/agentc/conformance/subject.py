"""Subject: the backend that is held to the kit's checks, with values to start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc.backend_api import Backend, StageBackend
from agentc.conformance.bench import Bench, LoweringOutcome
from agentc.conformance.values import others, sample, value_at
from agentc.kinds import kind_named
from agentc.kinds.field import Field
from agentc.kinds.table import TRAINERS

TYPICAL: Mapping[str, Any] = {"lr": 1e-3, "global_batch": 8, "max_length": 64, "beta": 0.1}
"""Settings that trainings need, with values that any trainer lowers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendUnderTest:
    """A backend on its bench.

    `given` are values that the backend needs to lower at all, beyond what its kind's stages set;
    `tried` are values of settings, by dotted path, that the kit could not guess (a setting whose
    value must be a file, say). `python` maps the SHA-256 of a lock to the interpreter of that
    software environment, where it is built: programs are tried in it.
    """

    backend: Backend
    bench: Bench
    given: Mapping[str, Any] = field(default_factory=dict)
    tried: Mapping[str, list[Any]] = field(default_factory=dict)
    pythons: Mapping[str, Path] = field(default_factory=dict)

    @property
    def own_fields(self) -> tuple[Field, ...]:
        """What the backend itself declares: options of a stage's backend, fields of the others."""
        backend = self.backend
        return backend.options if isinstance(backend, StageBackend) else backend.fields

    @property
    def table(self) -> tuple[Field, ...]:
        """All settings: those of the kind, and the backend's own."""
        if not isinstance(self.backend, StageBackend):
            return self.own_fields
        kind = kind_named(self.backend.kind)
        return (*(() if kind is None else kind.fields), *self.own_fields)

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
            yield from others(field, value_at(values, path, field))

    def rivals(self) -> list[str]:
        """Ids of the other installed backends that could do the same work."""
        table = self.bench.table
        if isinstance(self.backend, StageBackend):
            peers: tuple[Backend, ...] = table.stage_backends(self.backend.kind)
        else:
            peers = table.servers()
        return [peer.id for peer in peers if peer.id != self.backend.id]
