"""Tasks, as rows of a file in ColBench's published form, and splits of them.

Splits are parts by hash, ranges, or other files, and share no task. They are read while a spec is
compiled where tasks are in files, and by the server in any case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agentc_backends.environments.server.splits import (
    SplitError,
    TasksError,
    check_disjoint,
    check_names,
    excluded_splits,
    read_rows,
)


@dataclass(frozen=True, slots=True)
class HumanFact:
    """What a scripted human can tell: `sentence`, to a question about `keys`."""

    keys: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeTask:
    """`description` is all that the agent is told; `reference`, the source of a function, is what
    the human knows. `calls` are expressions, whose values the reference gives. Without `facts` a
    scripted human derives them."""

    id: str
    description: str
    reference: str
    calls: tuple[str, ...]
    facts: tuple[HumanFact, ...] = ()


def task_id(description: str, reference: str) -> str:
    """By what a task is: 16 digits."""
    return hashlib.sha256(f"{description}\0{reference}".encode()).hexdigest()[:16]


def read_tasks(content: bytes, where: str) -> tuple[CodeTask, ...]:
    """The tasks of a JSONL file, in its order; other keys of its rows are left alone. Raises
    TasksError."""
    return read_rows(content, where, _task)


def digest(splits: Mapping[str, Iterable[CodeTask]]) -> str:
    """Of all that tasks are, split by split."""
    whole = [
        [name, [[task.id, *task.calls] for task in tasks]] for name, tasks in sorted(splits.items())
    ]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _task(row: Any, where: str) -> CodeTask:
    match row:
        case {
            "problem_description": str(description),
            "ground_truth": str(reference),
            "test_cases": dict() | list() as tests,
        } if description.strip() and reference.strip():
            return CodeTask(
                id=task_id(description, reference),
                description=description,
                reference=reference,
                calls=_calls(tests, where),
            )
    raise TasksError(
        f"{where} is no task; expected `problem_description`, `ground_truth` and `test_cases`"
    )


def _calls(tests: dict[str, Any] | list[Any], where: str) -> tuple[str, ...]:
    calls = tuple(tests.values() if isinstance(tests, dict) else tests)
    if not calls or not all(isinstance(call, str) for call in calls):
        raise TasksError(f"{where}: `test_cases` are expressions, one or more")
    return calls


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
    return SplitRule(own, bounds, file, excluded_splits(name, value, written), drops == "drop")


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
