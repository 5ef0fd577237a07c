"""Splits of tasks: parts by hash, ranges, other files; disjoint by what a task is.

Read while a spec is compiled where tasks lie in files, and by the server in any case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agentc_backends.environments.server.splits import (
    SplitError,
    check_disjoint,
    check_names,
    others_left_out,
)

INVENTED = "invented"
"""What `tasks` is where it names no file."""
OWN = ("train", "validation", "test")
DEFAULT: Mapping[str, Any] = {name: {"own": name} for name in OWN}
SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
_BOUNDS = (("train", 205), ("validation", 230), ("test", 256))
"""Of 256: the tasks of each part have a lower first byte."""


class _WithId(Protocol):
    @property
    def id(self) -> str: ...


Task = TypeVar("Task", bound=_WithId)
TasksOf = Callable[[str | None], Sequence[Task]]
"""The tasks of a file, or of the entry itself (None). Raises TasksError."""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """How a split is written: one of `own` and `bounds`, or all of `file`."""

    own: str | None
    bounds: tuple[int, int] | None
    file: str | None
    left_out: tuple[str, ...]
    drops: bool


def read_rules(written: Mapping[str, Any]) -> dict[str, SplitRule]:
    """Raises SplitError."""
    check_names(written)
    return {name: _rule(name, value, written) for name, value in written.items()}


def resolve(rules: Mapping[str, SplitRule], tasks_of: TasksOf[Task]) -> dict[str, tuple[Task, ...]]:
    """The tasks of each split, in their order. Raises SplitError, TasksError."""
    found = {name: _tasks(name, rule, tasks_of(rule.file)) for name, rule in rules.items()}
    for name, rule in rules.items():
        others = {task.id for other in rule.left_out for task in found[other]}
        found[name] = tuple(task for task in found[name] if task.id not in others)
        if not found[name]:
            raise SplitError(f"the split `{name}` holds no task")
    check_disjoint(
        found, lambda shared: f"{len(shared)} tasks, such as {shared[0].id}", lambda task: task.id
    )
    return found


def _rule(name: str, value: Any, written: Mapping[str, Any]) -> SplitRule:
    own: str | None = None
    bounds: tuple[int, int] | None = None
    file: str | None = None
    match value:
        case {"own": str(part)} if part in OWN:
            own, known = part, {"own"}
        case {"range": [int(first), int(end)]} if 0 <= first < end:
            bounds, file, known = (first, end), value.get("file"), {"range", "file"}
        case {"file": str(path)}:
            file, known = path, {"file"}
        case _:
            raise _wrong(name, value)
    drops = value.get("repeated")
    others = set(value) - known - {"except", "repeated"}
    if others or drops not in (None, "drop") or not isinstance(file, str | None):
        raise _wrong(name, value)
    return SplitRule(own, bounds, file, others_left_out(name, value, written), drops == "drop")


def _wrong(name: str, value: Any) -> SplitError:
    return SplitError(
        f"the split `{name}` is {json.dumps(value, default=str)[:80]}; expected `{{own: "
        f"{'|'.join(OWN)}}}`, `{{range: [first, end]}}` (the end is left out) or `{{file: path}}`, "
        "with `except: [other split]` or `repeated: drop`"
    )


def _tasks(name: str, rule: SplitRule, tasks: Sequence[Task]) -> tuple[Task, ...]:
    chosen = tuple(tasks)
    if rule.own is not None:
        chosen = tuple(task for task in tasks if _part(task.id) == rule.own)
    if rule.bounds is not None:
        first, end = rule.bounds
        if end > len(tasks):
            raise SplitError(
                f"the split `{name}` ends at {end}, but there are {len(tasks)} tasks: 0 to "
                f"{len(tasks) - 1}"
            )
        chosen = tuple(tasks[first:end])
    once = {task.id: task for task in chosen}
    if len(once) < len(chosen) and not rule.drops:
        raise SplitError(
            f"the split `{name}` holds {len(chosen) - len(once)} tasks twice: write `repeated: "
            "drop` in it to take each once"
        )
    return tuple(once.values())


def _part(task: str) -> str:
    """Ids are hashes themselves."""
    byte = int(task[-2:], 16)
    return next(part for part, bound in _BOUNDS if byte < bound)
