"""What both declarations of ColBench read alike while a spec is compiled: splits, files of tasks,
the human's words. `dialogue.py` reads the same in the server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from agentc.backend_api import EnvironmentBackend, OptionView
from agentc.kinds.field import Json
from agentc_backends.environments.colbench.tasks import (
    DEFAULT,
    INVENTED,
    OWN,
    SHARES,
    SplitRule,
    Task,
    read_rules,
    resolve,
)
from agentc_backends.environments.published_data import COLBENCH_BACKEND, fetch_advice
from agentc_backends.environments.server.splits import SplitError, TasksError


class TaskSettings(Protocol):
    """Of both environments."""

    @property
    def tasks(self) -> str: ...
    @property
    def splits(self) -> Mapping[str, Any]: ...
    @property
    def invented_tasks(self) -> int: ...
    @property
    def is_invented(self) -> bool: ...


def split_rules(options: OptionView, settings: TaskSettings) -> dict[str, SplitRule]:
    """How splits are written; what cannot be is refused."""
    try:
        rules = read_rules(settings.splits)
    except SplitError as error:
        options.refuse("splits", str(error))
        return {}
    if settings.is_invented:
        for name, rule in rules.items():
            end = rule.bounds[1] if rule.bounds is not None and rule.file is None else 0
            if rule.file is not None:
                options.refuse(
                    "splits",
                    f"the split `{name}` names a file, and `tasks: {INVENTED}` invents them",
                    fix="name a file in `tasks` as well, or only ranges",
                )
            elif end > settings.invented_tasks:
                options.refuse(
                    "splits",
                    f"the split `{name}` ends at {end}; {settings.invented_tasks} are invented",
                    fix=f"write `invented_tasks: {end}`",
                )
    return rules


def split_tasks(
    options: OptionView,
    settings: TaskSettings,
    rules: Mapping[str, SplitRule],
    read: Callable[[bytes, str], Sequence[Task]],
    origin: str,
) -> dict[str, tuple[Task, ...]] | None:
    """The tasks of files, split by split; None where something was refused. `origin` says where
    files of tasks come from."""
    if options.refusals:
        return None
    files: dict[str, Sequence[Task]] = {}

    def tasks_of(file: str | None) -> Sequence[Task]:
        path = file or settings.tasks
        if path not in files:
            content = options.file(path)
            if content is None:
                raise TasksError(f"there is no file {path} that can be read")
            files[path] = read(content, path)
        return files[path]

    try:
        return resolve(rules, tasks_of)
    except TasksError as error:
        options.refuse(
            "tasks", str(error), fix=fetch_advice((COLBENCH_BACKEND,), options.unreadable) or origin
        )
    except SplitError as error:
        options.refuse("splits", str(error))
    return None


def text_digest(
    options: OptionView,
    field: str,
    path: str | None,
    fault: Callable[[str], str],
    fix: str,
) -> str | None:
    """Of a file of words; `fault` says what is wrong with them, if anything."""
    if path is None:
        return None
    content = options.file(path)
    wrong = "cannot be read"
    if content is not None:
        try:
            wrong = fault(content.decode("utf-8"))
        except UnicodeDecodeError:
            wrong = "is no text in UTF-8"
    if content is None or wrong:
        options.refuse(field, f"{path} {wrong}", fix=fix)
        return None
    return hashlib.sha256(content).hexdigest()


def split_names(given: Mapping[str, Json]) -> tuple[str, ...]:
    """Under a spec's settings, which may still be wrong in any way."""
    splits = given.get("splits")
    return tuple(splits) if isinstance(splits, dict) and splits else OWN


def expected_tasks(
    given: Mapping[str, Json], invented_tasks: int
) -> Mapping[str, tuple[float, float]]:
    """How large splits are: exact of ranges, about as the hash has it of parts; of whole files
    nothing is known here."""
    splits, count = given.get("splits"), given.get("invented_tasks")
    total = count if isinstance(count, int) else invented_tasks
    invented = given.get("tasks", INVENTED) == INVENTED
    found: dict[str, tuple[float, float]] = {}
    for name, value in (splits if isinstance(splits, dict) else DEFAULT).items():
        match value:
            case {"range": [int(first), int(end)]}:
                found[name] = (float(max(end - first, 1)), 1.0)
            case {"own": str(part)} if invented and part in SHARES:
                found[name] = (max(SHARES[part] * total, 1.0), 1.3)
    return found


def configured(
    backend: EnvironmentBackend, given: Mapping[str, Json], **more: Any
) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way; `more` are
    parts that one environment alone declares by them."""
    rounds = given.get("rounds")
    invented = given.get("tasks", INVENTED) == INVENTED
    return replace(
        backend,
        splits=split_names(given),
        max_turns=rounds if isinstance(rounds, int) and rounds > 0 else backend.max_turns,
        capabilities=backend.capabilities - (frozenset() if invented else {"expert"}),
        **more,
    )
