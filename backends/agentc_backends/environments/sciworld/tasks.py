"""ScienceWorld's thirty tasks: names, numbers of variations, the simulator's own splits.

A task of agentc is one variation of one of them, `boil:3`: that pair, never an index into some
list, is a task's identity. Standard library only: the declaration and the server both read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """`number` is the benchmark's (`4-2`); `limit` is ETO's step limit, where it has one."""

    number: str
    name: str
    variations: int
    limit: int | None


TASKS: tuple[Task, ...] = (
    Task("1-1", "boil", 30, 100),
    Task("1-2", "melt", 30, 80),
    Task("1-3", "freeze", 30, 80),
    Task("1-4", "change-the-state-of-matter-of", 30, 80),
    Task("2-1", "use-thermometer", 540, 30),
    Task("2-2", "measure-melting-point-known-substance", 436, 120),
    Task("2-3", "measure-melting-point-unknown-substance", 300, None),
    Task("3-1", "power-component", 20, 20),
    Task("3-2", "power-component-renewable-vs-nonrenewable-energy", 20, 30),
    Task("3-3", "test-conductivity", 900, 30),
    Task("3-4", "test-conductivity-of-unknown-substances", 600, 30),
    Task("4-1", "find-living-thing", 300, 15),
    Task("4-2", "find-non-living-thing", 300, 15),
    Task("4-3", "find-plant", 300, 15),
    Task("4-4", "find-animal", 300, 15),
    Task("5-1", "grow-plant", 126, 30),
    Task("5-2", "grow-fruit", 126, 60),
    Task("6-1", "chemistry-mix", 32, 60),
    Task("6-2", "chemistry-mix-paint-secondary-color", 36, 15),
    Task("6-3", "chemistry-mix-paint-tertiary-color", 36, 30),
    Task("7-1", "lifespan-longest-lived", 125, 10),
    Task("7-2", "lifespan-shortest-lived", 125, 10),
    Task("7-3", "lifespan-longest-lived-then-shortest-lived", 125, 12),
    Task("8-1", "identify-life-stages-1", 14, 30),
    Task("8-2", "identify-life-stages-2", 10, 30),
    Task("9-1", "inclined-plane-determine-angle", 168, None),
    Task("9-2", "inclined-plane-friction-named-surfaces", 1386, None),
    Task("9-3", "inclined-plane-friction-unnamed-surfaces", 162, None),
    Task("10-1", "mendelian-genetics-known-plant", 120, None),
    Task("10-2", "mendelian-genetics-unknown-plant", 480, None),
)
UNIFORM_LIMIT = 100
"""The simulator's own step limit, and that of tasks for which ETO has none."""
MOST_STEPS = max(task.limit or UNIFORM_LIMIT for task in TASKS)
_BY_NAME: Mapping[str, Task] = {task.name: task for task in TASKS}
_BY_NUMBER: Mapping[str, Task] = {task.number: task for task in TASKS}
_NOT_IN_AGENTGYM = frozenset({"5-1", "5-2", "9-1", "9-2", "9-3", "10-1", "10-2"})


def task_named(name: str) -> Task | None:
    """A task by its name, its number, or its name in releases before 1.1 (`task-1-boil`)."""
    plain = re.sub(r"task-(?:\d|a|b)+-|[()]", "", name.replace("mendellian", "mendelian"))
    return _BY_NAME.get(plain) or _BY_NUMBER.get(plain)


def task_id(task: str, variation: int) -> str:
    return f"{task}:{variation}"


def split_task_id(identity: str) -> tuple[Task, int] | None:
    """The task and variation of a task id; None for what is none."""
    name, colon, digits = identity.partition(":")
    task = _BY_NAME.get(name)
    if task is None or not colon or not re.fullmatch(r"0|[1-9][0-9]{0,5}", digits):
        return None
    return (task, int(digits)) if int(digits) < task.variations else None


def own_split(task: Task, split: str) -> range:
    """The simulator's own split of a task's variations: halves, quarters, and what is left over
    goes to test (`PythonInterface.getSets`)."""
    quarter = task.variations // 4
    starts = {"train": (0, 2 * quarter), "dev": (2 * quarter, 3 * quarter),
              "test": (3 * quarter, task.variations)}  # fmt: skip
    return range(*starts[split])


def agentgym_tasks(*, with_unknown_melting_points: bool = True) -> tuple[str, ...]:
    """What AgentGym's ScienceWorld server counts, in its order: 23 tasks, 4639 variations.

    Its published lists of indices (and Agent-R's) leave one task more out, 2-3: with it, every
    index from 1096 on means another variation (AgentGym issue 49).
    """
    left_out = _NOT_IN_AGENTGYM | (frozenset() if with_unknown_melting_points else {"2-3"})
    return tuple(
        task_id(task.name, variation)
        for task in TASKS
        if task.number not in left_out
        for variation in range(task.variations)
    )


def step_limit(task: Task, rule: str) -> int | None:
    """Actions of an episode under the setting `step_limit`."""
    if rule == "none":
        return None
    return task.limit or UNIFORM_LIMIT if rule == "per_task" else UNIFORM_LIMIT
