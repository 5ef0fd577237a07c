"""Tracking views: how lowering reads settings, so that what is set but never read is noticed.

`StageView` and `OptionView` hand out effective values (the spec's, else the default) and record
each name that was asked for. See `agentc.passes.lower` for what is done with the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from agentc.kinds.field import SECRET, Field, Json


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a table of fields says about one dotted path. `semantic` is true when the field and
    all groups around it are; `below` are names and paths of a group's fields."""

    declared: Field
    parts: tuple[str, ...]
    semantic: bool
    below: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class OptionView:
    """Effective values of a table of fields, by dotted path (`decode.temperature`).

    Reading an undeclared name is a bug in the backend (KeyError). `identity()` gives the semantic
    values that were read and differ from their defaults: the part of a key that settings make.
    `reasons` says of some settings why they are not read. `known` remembers what was looked up in
    the table; views of one table share it, since a plan of 10,000 jobs looks up the same few
    paths a million times. `nodes` and `gpus` (of all nodes together, None on one) are what
    `placement:` lets a server spread over, and `on_gpu` says whether it has any; what is made of
    them is placement too, and enters no key.
    """

    table: tuple[Field, ...]
    values: Mapping[str, Json]
    read: set[str] = field(default_factory=set)
    refusals: list[Refusal] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    known: dict[str, Setting] = field(default_factory=dict, repr=False)
    files: Callable[[str], bytes | None] | None = field(default=None, repr=False)
    nodes: int = 1
    gpus: int | None = None
    on_gpu: bool = False

    def file(self, path: str) -> bytes | None:
        """The content of a small file that the spec names (relative paths start at the spec);
        None when it cannot be read. It enters no key by itself: what is made of it must."""
        return None if self.files is None else self.files(path)

    def get(self, path: str) -> Json:
        """The effective value at a dotted path; marks it as honoured."""
        setting = self._setting(path)
        self.read.add(path)
        given = self._given(setting.parts)
        declared = setting.declared
        if setting.below:
            if not isinstance(given, dict) and declared.default is None:
                return None
            return {name: self.get(below) for name, below in setting.below}
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

    def secret(self, path: str) -> str | None:
        """The name of the secret that a field of `kinds.field.secret` refers to, or None."""
        value = self.get(path)
        name = value.get(SECRET) if isinstance(value, dict) else None
        return name if isinstance(name, str) else None

    def flag(self, path: str) -> bool:
        value = self.get(path)
        assert isinstance(value, bool), path
        return value

    def is_set(self, path: str) -> bool:
        """Whether the spec itself gives a value other than null (does not mark it as read)."""
        return self._given(path.split(".")) not in (None, _ABSENT)

    def refuse(
        self, path: str, reason: str, *, capability: str | None = None, fix: str | None = None
    ) -> None:
        """Say that this setting cannot be honoured; becomes a compile error at its place."""
        self.refusals.append(Refusal(path=path, reason=reason, capability=capability, fix=fix))

    def leave(self, path: str, because: str) -> None:
        """Say why this setting, with the others as they are, is not read. Where the spec sets it
        all the same, that is a compile error with this reason."""
        self.reasons[path] = because

    def identity(self) -> dict[str, Json]:
        """Semantic values read so far that differ from their defaults, by dotted path, sorted.

        A nullable group that is given counts as `true` at its own path, whatever it holds.
        """
        result: dict[str, Json] = {}
        for path in sorted(self.read):
            setting = self._setting(path)
            if not setting.semantic:
                continue
            declared = setting.declared
            given = self._given(setting.parts)
            if declared.fields:
                if declared.default is None and isinstance(given, dict):
                    result[path] = True
            elif given is not _ABSENT and (declared.required or given != declared.default):
                result[path] = given
        return result

    def _given(self, parts: Sequence[str]) -> Json | _Absent:
        node: Json | _Absent = self.values.get(parts[0], _ABSENT)
        for part in parts[1:]:
            if not isinstance(node, dict):
                return _ABSENT
            node = node.get(part, _ABSENT)
        return node

    def _setting(self, path: str) -> Setting:
        setting = self.known.get(path)
        if setting is None:
            setting = self.known[path] = _look_up(self.table, path)
        return setting


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
            known=self.known,
        )

    def absorb(self, other: StageView) -> None:
        """Count what a scoped view read, left and refused as read, left and refused here."""
        self.read |= other.read
        self.refusals.extend(other.refusals)
        self.reasons |= other.reasons


def _look_up(table: tuple[Field, ...], path: str) -> Setting:
    parts = tuple(path.split("."))
    semantic = True
    declared: Field | None = None
    for part in parts:
        declared = next((f for f in table if f.name == part), None)
        if declared is None:
            raise KeyError(f"undeclared option {path}")
        semantic = semantic and declared.identity == "semantic"
        table = declared.fields
    assert declared is not None
    below = tuple((sub.name, f"{path}.{sub.name}") for sub in table)
    return Setting(declared=declared, parts=parts, semantic=semantic, below=below)
