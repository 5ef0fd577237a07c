"""Ids of tasks, as agentc's environments have them, in records that others published.

The trajectories of ETO's authors (the hub's `agent-eto/eto-sft-trajectory`) name a goal of WebShop
by its number, a variation of ScienceWorld by `<task>_<variation>`, and a game of ALFWorld by the
path of its file. Environments know nothing of this: a task is one text to `pair`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from agentc_backends.data.datasets.records import FieldError, Fields, MalformedError

TaskIds: TypeAlias = Literal["as_written", "eto_webshop", "eto_sciworld", "eto_alfworld"]

SCIWORLD_TASKS = (
    "boil",
    "change-the-state-of-matter-of",
    "freeze",
    "melt",
    "measure-melting-point-known-substance",
    "measure-melting-point-unknown-substance",
    "use-thermometer",
    "power-component",
    "power-component-renewable-vs-nonrenewable-energy",
    "test-conductivity",
    "test-conductivity-of-unknown-substances",
    "find-animal",
    "find-living-thing",
    "find-non-living-thing",
    "find-plant",
    "grow-fruit",
    "grow-plant",
    "chemistry-mix",
    "chemistry-mix-paint-secondary-color",
    "chemistry-mix-paint-tertiary-color",
    "lifespan-longest-lived",
    "lifespan-longest-lived-then-shortest-lived",
    "lifespan-shortest-lived",
    "identify-life-stages-1",
    "identify-life-stages-2",
    "inclined-plane-determine-angle",
    "inclined-plane-friction-named-surfaces",
    "inclined-plane-friction-unnamed-surfaces",
    "mendelian-genetics-known-plant",
    "mendelian-genetics-unknown-plant",
)
"""By ETO's number: the names of ScienceWorld 1.0, `task-1-boil` and so on, in the order of text."""


def task_id_of(fields: Fields, ids: TaskIds) -> str | None:
    """The task of a record; None where it names none. Raises MalformedError where it should, and
    FieldError for a `task_id` that is no text."""
    if ids == "as_written":
        task = fields.take("task_id")
        if isinstance(task, int) and not isinstance(task, bool):
            task = str(task)
        if task is not None and not isinstance(task, str):
            raise FieldError(f"has a `task_id` that is no text: {task!r}")
        return task or None
    name, read = _READERS[ids]
    written = fields.take(name)
    found = read("" if written is None else str(written))
    if found is None:
        raise MalformedError(f"has no `{name}` that `task_ids: {ids}` can read")
    return found


def _webshop(written: str) -> str | None:
    match = re.fullmatch(r"(?:webshop_)?(\d+)", written)
    return match and f"webshop_{int(match[1])}"


def _sciworld(written: str) -> str | None:
    match = re.fullmatch(r"(\d{1,2})_(\d+)", written)
    if match is None or int(match[1]) >= len(SCIWORLD_TASKS):
        return None
    return f"{SCIWORLD_TASKS[int(match[1])]}:{int(match[2])}"


def _alfworld(written: str) -> str | None:
    match = re.search(r"([^/]+)/(trial_T[0-9_]+)(?:/game\.tw-pddl)?/?$", written)
    return match and f"{match[1]}/{match[2]}"


_READERS: Mapping[str, tuple[str, Callable[[str], str | None]]] = {
    "eto_webshop": ("id", _webshop),
    "eto_sciworld": ("id", _sciworld),
    "eto_alfworld": ("game_file", _alfworld),
}
"""The field of a record that names its task, and how."""
