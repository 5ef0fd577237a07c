"""Reads tasks of a JSONL file, where an environment's tasks are rows that somebody wrote.

What a row has to hold is each environment's own. Neighbour: `splits.py`, which puts them into
splits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

Task = TypeVar("Task")


class TasksError(ValueError):
    """A file holds something else than tasks; `fix` says what to write instead."""

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.fix = fix


def read_rows(content: bytes, where: str, task_of: Callable[[Any, str], Task]) -> tuple[Task, ...]:
    """What `task_of` makes of each row of a JSONL file, and of where it stands. Raises
    TasksError."""
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise TasksError(f"{where} is no text in UTF-8: {error}") from None
    found = tuple(
        task_of(_row(line, f"{where}, line {number}"), f"{where}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    )
    if not found:
        raise TasksError(f"{where} holds no task")
    return found


def _row(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise TasksError(f"{where} is no JSON") from None
