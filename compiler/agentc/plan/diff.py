"""Compares two plans job by job and finds the root cause of every difference.

Pure: `plan`, `why`, `run` and the report all show what this module finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agentc.kinds.field import Json
from agentc.plan.record import JobRecord, read_records

Novelty: TypeAlias = Literal["same", "changed", "new", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that enters a key and differs. `before` or `after` is None for one that only the
    other plan has."""

    path: str
    before: Json
    after: Json

    def text(self) -> str:
        """One line for people: `beta: 0.1 -> 0.5`."""
        name = self.path.removeprefix("settings.").removeprefix("facts.")
        if self.path.endswith("environment"):
            return f"{name}: other versions of packages"
        before = "default" if self.before is None else _short(self.before)
        after = "default" if self.after is None else _short(self.after)
        return f"{name}: {before} -> {after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDiff:
    """How one job differs between two plans.

    `changes` are its own; `upstream` are ids of inputs whose artifacts differ; `causes` are the
    jobs, this one included, whose own changes are the cause: bit n stands for `order[n]`, since
    a chain in which every job has changed would hold half as many names as its length squared.
    """

    id: str
    novelty: Novelty
    changes: tuple[Change, ...] = ()
    upstream: tuple[str, ...] = ()
    causes: int = 0
    order: Sequence[str] = field(default=(), repr=False, compare=False)

    @property
    def roots(self) -> tuple[str, ...]:
        """Ids of the causes, those that come last in the plan first."""
        return tuple(self.nearest_roots(self.root_count))

    @property
    def root_count(self) -> int:
        """How many causes there are."""
        return self.causes.bit_count()

    def nearest_roots(self, most: int) -> list[str]:
        """As many of `roots`, without a look at the others."""
        found: list[str] = []
        left = self.causes
        while left and len(found) < most:
            last = left.bit_length() - 1
            found.append(self.order[last])
            left ^= 1 << last
        return found


def compare_plans(
    before: Mapping[str, Json] | None, after: Mapping[str, Json]
) -> dict[str, JobDiff]:
    """Every job of `after` in its order, then the jobs that only `before` has."""
    old = {} if before is None else read_records(before)
    new = read_records(after)
    order = tuple(new)
    found: dict[str, JobDiff] = {}
    for record in new.values():
        found[record.id] = _compare(old.get(record.id), record, found, order)
    for name in old:
        if name not in new:
            found[name] = JobDiff(id=name, novelty="gone")
    return found


def explain_root(diffs: Mapping[str, JobDiff], name: str) -> str:
    """One line on a job that is a root cause."""
    diff = diffs[name]
    if diff.novelty == "new":
        return f"{name} is new"
    return f"{name} ({'; '.join(change.text() for change in diff.changes)})"


def _compare(
    old: JobRecord | None, new: JobRecord, done: Mapping[str, JobDiff], order: Sequence[str]
) -> JobDiff:
    if old is not None and old.key == new.key:
        return JobDiff(id=new.id, novelty="same")
    parents = [parent for parents in new.inputs.values() for parent in parents]
    upstream = tuple(dict.fromkeys(p for p in parents if p in done and done[p].novelty != "same"))
    causes = 0
    for parent in upstream:
        causes |= done[parent].causes
    changes = () if old is None else (*_own_changes(old, new), *_wiring(old, new))
    if old is None or changes or not causes:
        causes |= 1 << len(done)
    return JobDiff(
        id=new.id,
        novelty="new" if old is None else "changed",
        changes=changes,
        upstream=upstream,
        causes=causes,
        order=order,
    )


def _own_changes(old: JobRecord, new: JobRecord) -> list[Change]:
    paths = dict.fromkeys((*old.own, *new.own))
    return [
        Change(path=path, before=old.own.get(path), after=new.own.get(path))
        for path in paths
        if old.own.get(path) != new.own.get(path)
    ]


def _wiring(old: JobRecord, new: JobRecord) -> list[Change]:
    """Inputs that are taken from other jobs than before."""
    return [
        Change(
            path=f"input {role}",
            before=list(old.inputs.get(role, ())) or None,
            after=list(new.inputs.get(role, ())) or None,
        )
        for role in dict.fromkeys((*old.inputs, *new.inputs))
        if old.inputs.get(role, ()) != new.inputs.get(role, ())
    ]


def _short(value: Json) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = ", ".join(str(item) for item in value)
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"
