"""What a setting is in effect, and tracking views: how lowering reads settings, so that what is
set but never read is noticed.

Lowering (the views here), the rules between settings (`agentc.passes.checks`) and cost
(`agentc.cost.subject`) keep a spec's values in forms of their own. Each brings the look-up of what
is given; what follows from it (`effective`) is the same for all of them. See `agentc.passes.lower`
for what is done with the names that a view recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from agentc.kinds.field import SECRET, Field, Json
from agentc.program.settings import Declared, declared_in


class Absent(Enum):
    """Marks a path that the spec does not give: null is a value (`max_extra_rounds: null`)."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
Given: TypeAlias = Callable[[Sequence[str]], Json | Absent]
"""What the spec says at the parts of a dotted path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a table of fields says about one dotted path. `semantic` is true when the field and
    all groups around it are; `below` are names and paths of a group's fields; `groups` are the
    parts of the groups around it that may be null."""

    declared: Field
    parts: tuple[str, ...]
    semantic: bool
    below: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class SettingTable:
    """Fields by dotted path. What was looked up is kept: experiments have thousands of stages,
    and of each the same few paths are asked for."""

    fields: tuple[Field, ...]
    known: dict[str, Setting | None] = field(default_factory=dict, repr=False)

    def find(self, path: str) -> Setting | None:
        """None for a path that nothing declares."""
        if path not in self.known:
            self.known[path] = find_setting(self.fields, path)
        return self.known[path]


def find_setting(table: tuple[Field, ...], path: str) -> Setting | None:
    """The setting at a dotted path of a table, None where nothing declares it."""
    parts = tuple(path.split("."))
    semantic = True
    declared: Field | None = None
    groups: list[tuple[str, ...]] = []
    for depth, part in enumerate(parts):
        if declared is not None and declared.default is None:
            groups.append(parts[:depth])
        declared = next((f for f in table if f.name == part), None)
        if declared is None:
            return None
        semantic = semantic and declared.identity == "semantic"
        table = declared.fields
    assert declared is not None
    return Setting(
        declared=declared,
        parts=parts,
        semantic=semantic,
        below=tuple((sub.name, f"{path}.{sub.name}") for sub in table),
        groups=tuple(groups),
    )


def set_paths(table: tuple[Field, ...], values: Mapping[str, Json]) -> Iterator[str]:
    """Dotted paths of the leaves that are set. An explicit null that is the default sets
    nothing; a name that the table lacks counts as set, so that it is never lost in silence."""
    declared = {field.name: field for field in table}
    for name, value in values.items():
        field = declared.get(name)
        if field is not None and value is None and field.default is None:
            continue
        if field is not None and field.fields and isinstance(value, dict):
            if not value and field.default is None:
                yield name  # a group that is off unless it is given
            for path in set_paths(field.fields, value):
                yield f"{name}.{path}"
        else:
            yield name


def unused_paths(table: tuple[Field, ...], unused: Mapping[str, str]) -> dict[str, str]:
    """`StageBackend.unused` with the settings of its groups in place of the groups, each with its
    reason. Raises KeyError for a path that nothing declares."""
    paths: dict[str, str] = {}
    for path, reason in unused.items():
        setting = find_setting(table, path)
        if setting is None:
            raise KeyError(f"undeclared setting {path}")
        below = {inner: reason for _, inner in setting.below}
        paths |= unused_paths(table, below) if below else {path: reason}
    return paths


def effective(setting: Setting, given: Given) -> Json:
    """The value in effect. The fields of a group that may be null (`lora.rank`) have their
    defaults only where the group is given."""
    value = given(setting.parts)
    if not isinstance(value, Absent):
        return value
    if any(given(group) in (None, ABSENT) for group in setting.groups):
        return None
    declared = setting.declared
    return None if declared.required else declared.default  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A setting that a backend cannot honour. `capability` names what another backend may have,
    `missing` the file that could not be read."""

    path: str
    reason: str
    capability: str | None = None
    fix: str | None = None
    missing: str | None = None


@dataclass(slots=True)
class OptionView:
    """Effective values of a table of fields, by dotted path (`decode.temperature`).

    Reading an undeclared name is a bug in the backend (KeyError). `identity()` gives the semantic
    values that were read and differ from their defaults: the part of a key that settings make.
    `reasons` says of some settings why they are not read. `known` remembers what was looked up in
    the table; views of one table share it, since a plan of 10,000 jobs looks up the same few
    paths a million times. `lookups` are the values in effect that were looked up, which `scoped`
    views share. `nodes` and `gpus` (of all nodes together, None on one) are what
    `placement:` lets a server spread over, and `on_gpu` says whether it has any; what is made of
    them is placement too, and enters no key. `unused` are settings that the backend never reads,
    each with the reason.
    """

    table: tuple[Field, ...]
    values: Mapping[str, Json]
    read: set[str] = field(default_factory=set)
    refusals: list[Refusal] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    known: dict[str, Setting] = field(default_factory=dict, repr=False)
    lookups: dict[str, Json] = field(default_factory=dict, repr=False)
    files: Callable[[str], bytes | None] | None = field(default=None, repr=False)
    nodes: int = 1
    gpus: int | None = None
    on_gpu: bool = False
    unreadable: list[str] = field(default_factory=list, repr=False)
    unused: Mapping[str, str] = field(default_factory=dict, repr=False)

    def file(self, path: str) -> bytes | None:
        """The content of a small file that the spec names (relative paths start at the spec);
        None when it cannot be read. It enters no key by itself: what is made of it must."""
        content = None if self.files is None else self.files(path)
        if content is None:
            self.unreadable.append(path)
        return content

    def get(self, path: str) -> Json:
        """The effective value at a dotted path; marks it as honoured."""
        found = self.lookups
        if path in found:
            self.read.add(path)
            return found[path]
        setting = self._setting(path)
        self.read.add(path)
        if setting.below:  # not kept: its fields are read along with it
            if setting.declared.default is None and not isinstance(
                self._set_value(setting.parts), dict
            ):
                return None
            return {name: self.get(below) for name, below in setting.below}
        value = found[path] = effective(setting, self._set_value)
        return value

    def config_of(
        self,
        settings: type,
        at: str = "",
        *,
        without: Mapping[str, str] | None = None,
        placement: bool | None = None,
    ) -> dict[str, Json]:
        """The settings of a dataclass (`agentc.program.settings`) that have an effect, as a config
        has them: those of this table, or of its group `at`. One whose `only_if` does not hold, and
        one of `without` (name, or `group.name`: why), has none: it is left out and not read, with
        the reason. What the backend never reads (`unused`) is left out too.
        `placement`: only settings of placement, or only the others."""
        start = f"{at}." if at else ""
        reasons = dict(without or {})
        result: dict[str, Json] = {}
        for each in declared_in(settings):
            if placement is not None and placement != (each.about.identity == "placement"):
                continue
            path = start + each.name
            inner = {
                name.partition(".")[2]: reasons.pop(name)
                for name in [*reasons]
                if name.startswith(f"{each.name}.")
            }
            reason = reasons.pop(each.name, None)
            if self._is_unused(path):
                continue
            if reason is None:
                reason = self.without_effect(each, start, without=without or {})
            if reason is not None:
                self._leave_whole(path, reason)
            elif each.is_group and self._has_group(path):
                result[each.name] = self.config_of(each.kind, path, without=inner)
            else:
                value = self.get(path)
                # Plans have numbers that may be null as the spec writes them, others as floats.
                real = each.kind is float and not each.nullable and isinstance(value, int)
                result[each.name] = float(value) if real else value  # type: ignore[arg-type]
        assert not reasons, f"no settings of {settings.__name__}: {', '.join(reasons)}"
        return result

    def _is_unused(self, path: str) -> bool:
        """Whether the backend never reads a setting, or any of a group."""
        below = self._setting(path).below if self.unused else ()
        return path in self.unused or (below != () and all(self._is_unused(p) for _, p in below))

    def _has_group(self, path: str) -> bool:
        """Whether a group is there; one that may be null is read by that, without its settings."""
        setting = self._setting(path)
        if setting.declared.default is not None:
            return True
        self.read.add(path)
        return isinstance(self._set_value(setting.parts), dict)

    def without_effect(
        self, declared: Declared, start: str = "", *, without: Mapping[str, str]
    ) -> str | None:
        """Why a setting has no effect, None where it has one. One that depends on a setting without
        effect (one of `without`, say) has one; the other's reason is reported."""
        value: Json = None
        for condition in declared.about.only_if:
            path = start + condition.name
            if condition.role:
                inputs = getattr(self, "inputs", {}).get(condition.role)
                holds = bool(inputs) != condition.unless
            elif condition.name in without or path in self.reasons or path in self.unused:
                continue
            else:
                value = self.get(path)
                holds = condition.holds(value)
            if not holds:
                return condition.because.replace("{value}", str(value))
        return None

    def _leave_whole(self, path: str, because: str) -> None:
        """`leave`, for all settings of a group."""
        below = self._setting(path).below
        for _, inner in below:
            self._leave_whole(inner, because)
        if not below:
            self.leave(path, because)

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

    def set_paths(self) -> Iterator[str]:
        """Dotted paths of all that the spec itself sets."""
        return set_paths(self.table, self.values)

    def is_set(self, path: str) -> bool:
        """Whether the spec itself gives a value other than null (does not mark it as read)."""
        return self._set_value(path.split(".")) not in (None, ABSENT)

    def refuse(
        self,
        path: str,
        reason: str,
        *,
        capability: str | None = None,
        fix: str | None = None,
        missing: str | None = None,
    ) -> None:
        """Say that this setting cannot be honoured; becomes a compile error at its place. `missing`
        is the file that is not there, by default one that `file` could not read and the reason
        names: the error then says what lies there, or which file has nearly that name."""
        unread = [
            name
            for name in self.unreadable
            if re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", reason)
        ]
        self.refusals.append(
            Refusal(
                path=path,
                reason=reason,
                capability=capability,
                fix=fix,
                missing=missing or max(unread, key=len, default=None),
            )
        )

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
            given = self._set_value(setting.parts)
            if declared.fields:
                if declared.default is None and isinstance(given, dict):
                    result[path] = True
            elif given is not ABSENT and (declared.required or given != declared.default):
                result[path] = given
        return result

    def _set_value(self, parts: Sequence[str]) -> Json | Absent:
        node: Json | Absent = self.values.get(parts[0], ABSENT)
        for part in parts[1:]:
            if not isinstance(node, dict):
                return ABSENT
            node = node.get(part, ABSENT)
        return node

    def _setting(self, path: str) -> Setting:
        setting = self.known.get(path)
        if setting is None:
            setting = find_setting(self.table, path)
            if setting is None:
                raise KeyError(f"undeclared option {path}")
            self.known[path] = setting
        return setting


@dataclass(slots=True)
class StageView(OptionView):
    """An OptionView over a stage: kind fields and backend options in one table."""

    kind: str = ""
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def scoped(self) -> StageView:
        """A view with its own read record, for one of several jobs of the stage; what it reads
        counts for the whole as well (the caller merges with `absorb`)."""
        return StageView(
            table=self.table,
            values=self.values,
            kind=self.kind,
            inputs=self.inputs,
            known=self.known,
            lookups=self.lookups,
            files=self.files,
            unreadable=self.unreadable,
            unused=self.unused,
        )

    def absorb(self, other: StageView) -> None:
        """Count what a scoped view read, left and refused as read, left and refused here."""
        self.read |= other.read
        self.refusals.extend(other.refusals)
        self.reasons |= other.reasons
