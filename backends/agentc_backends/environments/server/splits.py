"""What splits have in common wherever a spec may write them (names, `except`, files, and numbers in
a line), and tasks that are rows of a JSONL file. Each environment defines the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
ReadFile: TypeAlias = Callable[[str], bytes | None]
"""The content of a file beside the spec, None where there is none that can be read."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class SplitError(ValueError):
    """A split is written wrongly, empty, or shares tasks with another."""


def check_names(written: Mapping[str, Any]) -> None:
    """Raises SplitError."""
    if not written:
        raise SplitError("no split is given")
    for name in written:
        if not _NAME.fullmatch(name):
            raise SplitError(f"`{name}` is no name for a split")


def excluded_splits(name: str, value: Mapping[str, Any], known: Container[str]) -> tuple[str, ...]:
    """The splits that this one names under `except`. Raises SplitError."""
    written = value.get("except", [])
    others = written if isinstance(written, list) else [written]
    for other in others:
        if not isinstance(other, str) or other not in known or other == name:
            raise SplitError(f"the split `{name}`: `except` names no other split: {other}")
    return tuple(others)


def check_disjoint(
    splits: Mapping[str, Iterable[T]],
    shown: Callable[[Sequence[T]], str],
    same: Callable[[T], Hashable] = lambda task: task,
) -> None:
    """Raises SplitError where splits share tasks: `shown` says which, as `3 tasks (7-9)`; tasks of
    one `same` are one."""
    seen: dict[Hashable, str] = {}
    for name, tasks in splits.items():
        own = [(task, same(task)) for task in tasks]
        shared = [task for task, key in own if key in seen]
        if shared:
            other = seen[same(shared[0])]
            raise SplitError(
                f"the splits `{other}` and `{name}` share {shown(shared)}: write "
                f"`except: [{other}]` in `{name}`, or `except: [{name}]` in `{other}`, to leave "
                "them out of one"
            )
        seen.update((key, name) for _, key in own)


def content_of(name: str, path: str, read_file: ReadFile) -> bytes:
    """The content of a file that a split names. Raises SplitError."""
    content = read_file(path)
    if content is None:
        raise SplitError(f"the split `{name}`: there is no file {path} that can be read")
    return content


def fold_numbers(numbers: Iterable[int]) -> str:
    """Numbers with runs folded, in the order given: `31-60,65`. The first tasks of a split are what
    `limit` takes."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def unfold_numbers(text: str) -> tuple[int, ...]:
    """The inverse of `fold_numbers`."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


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
