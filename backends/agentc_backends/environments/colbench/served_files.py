"""What both servers of ColBench read alike: tasks of files and the human's words, each as it was
when the spec was compiled. Neighbour: `declared.py`, the same at that time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from agentc_backends.environments.colbench.splits import Task, read_rules, resolve
from agentc_backends.environments.server.program import spec_content
from agentc_backends.environments.server.task_rows import TasksError


class ServedTasks(Protocol):
    """Settings of both environments."""

    @property
    def tasks(self) -> str: ...
    @property
    def splits(self) -> Mapping[str, Any]: ...
    @property
    def tasks_sha256(self) -> str | None: ...


def served_splits(
    settings: ServedTasks,
    own: Sequence[Task] | None,
    read: Callable[[bytes, str], Sequence[Task]],
    digest: Callable[[Mapping[str, Sequence[Task]]], str],
) -> dict[str, tuple[Task, ...]]:
    """The tasks of each split; `own` are invented ones. Raises TasksError, SplitError."""

    def tasks_of(file: str | None) -> Sequence[Task]:
        if file is None and own is not None:
            return own
        path = file or settings.tasks
        content = spec_content(path)
        if content is None:
            raise TasksError(f"there is no file {path} that can be read")
        return read(content, path)

    found = resolve(read_rules(settings.splits), tasks_of)
    if settings.tasks_sha256 not in (None, digest(found)):
        raise TasksError("the files hold other tasks than when the spec was compiled")
    return found


def checked_text(path: str | None, sha256: str | None, own: str) -> str:
    """A file's text, or our own where none is named. Raises ValueError."""
    if path is None:
        return own
    content = spec_content(path) or b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path} is not what it was when it was compiled")
    return content.decode("utf-8")
