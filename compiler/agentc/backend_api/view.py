"""Tracking views: how lowering reads settings, so that what is set but never read is noticed.

`StageView` and `OptionView` hand out effective values (the spec's, else the default) and record
each name that was asked for. See `agentc.passes.lower` for what is done with the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from agentc.kinds.field import Field, Json


class _Absent(Enum):
    """Marks a path that the spec does not give: null is a value (`max_extra_rounds: null`)."""

    ABSENT = "absent"


_ABSENT = _Absent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A setting that a backend cannot honour. `capability` names what another backend may have."""

    path: str
    reason: str
    capability: str | None = None
    fix: str | None = None


@dataclass(slots=True)
class OptionView:
    """Effective values of a table of fields, by dotted path (`decode.temperature`).

    Reading an undeclared name is a bug in the backend (KeyError). `identity()` gives the semantic
    values that were read and differ from their defaults: the part of a key that settings make.
    """

    table: tuple[Field, ...]
    values: Mapping[str, Json]
    read: set[str] = field(default_factory=set)
    refusals: list[Refusal] = field(default_factory=list)

    def get(self, path: str) -> Json:
        """The effective value at a dotted path; marks it as honoured."""
        declared = self._declared(path)
        self.read.add(path)
        if declared.fields:
            if not isinstance(self._given(path), dict) and declared.default is None:
                return None
            return {sub.name: self.get(f"{path}.{sub.name}") for sub in declared.fields}
        given = self._given(path)
        if given is not _ABSENT:
            return given
        return None if declared.required else declared.default  # type: ignore[return-value]

    def integer(self, path: str) -> int:
        value = self.get(path)
        assert isinstance(value, int), path
        assert not isinstance(value, bool), path
        return value

    def number(self, path: str) -> float:
        value = self.get(path)
        assert isinstance(value, (int, float)), path
        assert not isinstance(value, bool), path
        return float(value)

    def text(self, path: str) -> str:
        value = self.get(path)
        assert isinstance(value, str), path
        return value

    def flag(self, path: str) -> bool:
        value = self.get(path)
        assert isinstance(value, bool), path
        return value

    def is_set(self, path: str) -> bool:
        """Whether the spec itself gives a value other than null (does not mark it as read)."""
        return self._given(path) not in (None, _ABSENT)

    def refuse(
        self, path: str, reason: str, *, capability: str | None = None, fix: str | None = None
    ) -> None:
        """Say that this setting cannot be honoured; becomes a compile error at its place."""
        self.refusals.append(Refusal(path=path, reason=reason, capability=capability, fix=fix))

    def identity(self) -> dict[str, Json]:
        """Semantic values read so far that differ from their defaults, by dotted path, sorted.

        A nullable group that is given counts as `true` at its own path, whatever it holds.
        """
        result: dict[str, Json] = {}
        for path in sorted(self.read):
            declared = self._declared(path)
            if not self._semantic(path):
                continue
            given = self._given(path)
            if declared.fields:
                if declared.default is None and isinstance(given, dict):
                    result[path] = True
            elif given is not _ABSENT and (declared.required or given != declared.default):
                result[path] = given
        return result

    def _given(self, path: str) -> Json | _Absent:
        first, *rest = path.split(".")
        node: Json | _Absent = self.values.get(first, _ABSENT)
        for part in rest:
            if not isinstance(node, dict):
                return _ABSENT
            node = node.get(part, _ABSENT)
        return node

    def _declared(self, path: str) -> Field:
        table = self.table
        found: Field | None = None
        for part in path.split("."):
            found = next((f for f in table if f.name == part), None)
            if found is None:
                raise KeyError(f"undeclared option {path}")
            table = found.fields
        assert found is not None
        return found

    def _semantic(self, path: str) -> bool:
        table, parts = self.table, path.split(".")
        for part in parts:
            declared = next(f for f in table if f.name == part)
            if declared.identity != "semantic":
                return False
            table = declared.fields
        return True


@dataclass(slots=True)
class StageView(OptionView):
    """An OptionView over a stage: kind fields and backend options in one table."""

    stage_id: str = ""
    kind: str = ""
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def scoped(self) -> StageView:
        """A view with its own read record, for one of several jobs of the stage; what it reads
        counts for the whole as well (the caller merges with `absorb`)."""
        return StageView(
            table=self.table,
            values=self.values,
            stage_id=self.stage_id,
            kind=self.kind,
            inputs=self.inputs,
        )

    def absorb(self, other: StageView) -> None:
        """Count what a scoped view read and refused as read and refused here."""
        self.read |= other.read
        self.refusals.extend(other.refusals)
