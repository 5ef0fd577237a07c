"""What a task is, and tasks of a file: rows as ColBench publishes them. No state.

`invented.py` makes tasks too; `splits.py` puts them into splits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.server.task_rows import TasksError, read_rows


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
