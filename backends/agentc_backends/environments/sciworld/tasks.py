"""ScienceWorld's thirty tasks: names, numbers of variations, the simulator's own splits, and
published lists.

A task of agentc is one variation of one of them, `boil:3`: that pair, never an index into some
list, is a task's identity. Standard library only: the declaration and the server both read it."""

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


def simulator_split(task: Task, split: str) -> range:
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


# Published lists, as ranges of variations of each task. `eto` are the index files of the ETO code
# (Song et al., ACL 2024): 1483, 194 and 211 variations of 24 tasks. 54 of dev are in train as well.
# `agent_r` (Yuan et al., 2025): test are the 200 indices published with its code, read as AgentGym
# numbers tasks without 2-3 (then all are in the simulator's own test split); train is its
# collection order, variations 1 to 9 of 23 tasks, 2 of which are in test. A spec can also name
# files of that content.

_ETO_TRAIN = {
    "boil": "0-13",
    "melt": "0-13",
    "freeze": "0-13",
    "change-the-state-of-matter-of": "0-13",
    "use-thermometer": (
        "2,7,22,24,42,45,49,59,61,63,68,72,77,81-82,86-87,89-92,95,97-100,102,105,"
        "107-108,121,124,128,132-133,136,138,141-142,144,149,155-156,158,163,166,169-172,"
        "175,187-188,190-193,197-198,202-203,205-206,208-210,212,214,216,219,221,224-225,"
        "228,231,234-235,237,243,248,252,254,256,263,265,267,270,276,279,282,284,286,293,"
        "296,301,305,311,317,320,326,330,335,337,343,347,353,359,361,366-368,370,381,389,"
        "391-392,398-399,401,404"
    ),
    "measure-melting-point-known-substance": (
        "0-2,4,6,8-9,11,13-15,18,22,29,37-40,42,44-47,49,51,54-55,58-59,61,63-64,70-72,"
        "74-77,79,84-85,93-95,98-99,105,111-113,120-122,125-126,132-134,141-143,148,"
        "150-151,154,158,160,162,164,167,172,174,176,178,182,189,194-195,198,200,204-205,"
        "208-209,216-217,219-220,223,229-230,233-234,236,238,241,243-244,246,248,252,"
        "254-255,264,272,280,287,293-295,301,305,310,313,316,319-320,324,326"
    ),
    "power-component": "0-3,6-9",
    "power-component-renewable-vs-nonrenewable-energy": "0-5,7,9",
    "test-conductivity": (
        "4,6,11,16,20,23,29-30,36,39,42,47,50,59,62,65,78,81,89,92,101,109-110,115,117,"
        "121,123,133,145,147,154,159,163,181,186,188,192,197,211,215,217,225,228,230,238,"
        "247,253-254,258,260,265,271,279,290,293-294,300,306,309,311,319,321,323,330-331,"
        "336,339,344,348,359,362,368-369,371,377,390,394,396-397,401,407,412,415,417,420,"
        "423,427,444,456,459-461,465,488-489,500,510,512,521,525,531,537,540-541,553,557,"
        "560,573,581,587,590,601,610,618,626,635,647-648,665,673"
    ),
    "test-conductivity-of-unknown-substances": (
        "2,5,10-11,14-16,18,22,27,30,34-36,38,51,53-55,65,72,78,81,83,85,91-93,98-99,101,"
        "106,110,114,118-119,121,124-125,130,132,134-135,138-139,143,145-146,148,150,"
        "152-154,166,172,177-178,181-182,184-185,188-190,195-196,202,204,206,214,216,231,"
        "235,240,242-244,247,250,258,261-262,273-274,279,281,289,299,302-303,312,314-315,"
        "323,328-330,332,342,345,349,353,360,363,366,385-386,391,394,397-398,406,411,422,"
        "425-426,429,431,438,441"
    ),
    "find-living-thing": (
        "0,2-3,6-7,9-10,13,15-16,18-19,21,24,26-28,30,32,34-35,38,41-43,46-49,51,57-58,"
        "60,63,66,68-72,74,76-78,81,84,86,88-91,94,98,100,102-103,106-108,110,114-122,"
        "124-125,128-129,131-133,135-136,138,140-144,147,149-150,152-154,157-160,167,169,"
        "172,176-177,179-180,183,185-188,193,199-201,203-204,206,209,213-214,216-217,219,"
        "222"
    ),
    "find-non-living-thing": (
        "0-2,4-5,7-8,10-14,16,18,21-23,25-27,30,32-34,36-49,51-53,55-56,58-64,66-68,70,"
        "72-74,76,79-81,90,93,96-100,102-103,105,107,110-111,113-114,116,120,124,128,"
        "131-132,135,139,147-148,150,153,156,160,162-163,167,169,171-172,175,179-184,188,"
        "195-196,199-202,205-206,208,210,214-215,219,221-222,224"
    ),
    "find-plant": (
        "0-1,3,5,8-9,11,16-19,23-27,30,32-35,37,39-42,44,47,49-50,52,55-56,59-60,62-72,"
        "74,76-78,81,83-92,94-95,98-100,102-106,108-109,114,116-118,121-124,128-129,"
        "131-133,135,137,142-144,146-147,149,155,160,164-165,167,169,171,173,175-176,178,"
        "182,185,187,194,200,203,205-206,208,211,214,217-219,221"
    ),
    "find-animal": (
        "0-4,6,8-10,13,17,19,21-26,28-29,31,34,36,39-40,42,45,47,49,53-56,60,62,67-69,71,"
        "73-77,82-85,89-90,93,95-97,99-102,104,107-109,112-115,120-121,125,127-128,130,"
        "132,134-138,140-141,143-144,147-148,151,153,156-158,161,164-167,170,174-175,177,"
        "179-182,188,193,195,200-201,203,206,210,212,215-216,218-224"
    ),
    "grow-plant": "0-62,64,66-67,70,72-76,78,80-81,83-86,89-92",
    "grow-fruit": (
        "0,2-3,5-6,8-21,23-25,27-29,31,33-37,39,42-43,45-50,52-53,55-58,60-61,64,66,"
        "68-69,72-73,76,78,80,83,87,90-92"
    ),
    "chemistry-mix": "0-15",
    "chemistry-mix-paint-secondary-color": "0-17",
    "chemistry-mix-paint-tertiary-color": "0-17",
    "lifespan-longest-lived": "0-61,63-64,67,70,72-80,82-84,86-87,90-92",
    "lifespan-shortest-lived": "0-67,69,72,75-77,79-80,82-86,88,90-91",
    "lifespan-longest-lived-then-shortest-lived": (
        "0-29,31-42,44-56,58-65,67,71-72,74-77,79-81,83-84,88,91-92"
    ),
    "identify-life-stages-1": "0-5",
    "identify-life-stages-2": "0-3",
}
_ETO_DEV = {
    "boil": "14-17,19-20",
    "melt": "14-20",
    "freeze": "14-20",
    "change-the-state-of-matter-of": "14-20",
    "use-thermometer": "284-285,291,314,358,360,364,378,384-385",
    "measure-melting-point-known-substance": "253,280-281,286-287,292,299-300,325-326",
    "power-component": "11-13",
    "power-component-renewable-vs-nonrenewable-energy": "10,13-14",
    "test-conductivity": "474,479,485,523,528,579,587,640,655,662",
    "test-conductivity-of-unknown-substances": "313,352,376,386,389,394,409,413,418,448",
    "find-living-thing": "161,180,186,202,206,209,214,216,218,221",
    "find-non-living-thing": "150,158,179,184-185,187,192,198,209,214",
    "find-plant": "154,164-165,175,177,179,181,203,206,209",
    "find-animal": "159,173,176,188,193,211,213,216,218,221",
    "grow-plant": "64-65,68,77-78,84-88",
    "grow-fruit": "62,65,68,71-72,80,84-85,88,90",
    "chemistry-mix": "16-23",
    "chemistry-mix-paint-secondary-color": "18-26",
    "chemistry-mix-paint-tertiary-color": "18-26",
    "lifespan-longest-lived": "66,68,72-73,78,80,83-84,88,92",
    "lifespan-shortest-lived": "69-71,76,80,82,84-85,87,91",
    "lifespan-longest-lived-then-shortest-lived": "64,66-69,72,78,80,85,87",
    "identify-life-stages-1": "6-8",
    "identify-life-stages-2": "4-5",
}
_ETO_TEST = {
    "boil": "21-29",
    "melt": "21-29",
    "freeze": "21-29",
    "change-the-state-of-matter-of": "21-29",
    "use-thermometer": "405-414",
    "measure-melting-point-known-substance": "327-336",
    "power-component": "15-19",
    "power-component-renewable-vs-nonrenewable-energy": "15-19",
    "test-conductivity": "675-684",
    "test-conductivity-of-unknown-substances": "450-459",
    "find-living-thing": "225-234",
    "find-non-living-thing": "225-234",
    "find-plant": "225-234",
    "find-animal": "225-234",
    "grow-plant": "93-102",
    "grow-fruit": "93-102",
    "chemistry-mix": "24-31",
    "chemistry-mix-paint-secondary-color": "27-35",
    "chemistry-mix-paint-tertiary-color": "27-35",
    "lifespan-longest-lived": "93-102",
    "lifespan-shortest-lived": "93-102",
    "lifespan-longest-lived-then-shortest-lived": "93-102",
    "identify-life-stages-1": "9-13",
    "identify-life-stages-2": "6-9",
}
_AGENT_R_TEST = {
    "use-thermometer": (
        "416-418,423-424,427,437,439,445,449,452-453,461,464,486,489-490,496,500,504,511,"
        "515,521,532,537"
    ),
    "measure-melting-point-known-substance": (
        "335,342-343,346,357,360,363-364,366,368-369,372-373,392,395,398,405-406,408,414,"
        "428,433,435"
    ),
    "power-component": "15-16",
    "power-component-renewable-vs-nonrenewable-energy": "15,18-19",
    "test-conductivity": (
        "680,685-686,688,695,699,702,708,737,743,746,761,776,778-779,783,795,798,802,804,"
        "813,817-819,833,852,858,872,879-880,893"
    ),
    "test-conductivity-of-unknown-substances": (
        "451-452,460-462,464,467-468,470,475-477,485,491,495,510,512,516,519,523,527,533,"
        "537,541,545-546,553,583,585,589,595,597"
    ),
    "find-living-thing": (
        "226,228,230,235,239-240,251-252,257,260,263,265,268,274,276,279,281,288,295-296"
    ),
    "find-non-living-thing": "232,238,255,259,261,264,271,274,280,287,295",
    "find-plant": "228-229,235,246-247,249,252,254-255,258,260,279,282-283,287-288,297",
    "find-animal": "230,246,253,258,275,277-279,292",
    "chemistry-mix": "25,31",
    "chemistry-mix-paint-secondary-color": "27",
    "chemistry-mix-paint-tertiary-color": "27",
    "lifespan-longest-lived": "108,110,119",
    "lifespan-shortest-lived": "94,105,110-111,113",
    "lifespan-longest-lived-then-shortest-lived": "93-94,97-98,102,104-107,109,117,122",
    "identify-life-stages-1": "12",
    "identify-life-stages-2": "6-7",
}


def _agent_r_train() -> dict[str, str]:
    kept = {found[0].name for each in agentgym_tasks() if (found := split_task_id(each))}
    return {task.name: "1-9" for task in TASKS if task.name in kept}


LISTS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "eto": {"train": _ETO_TRAIN, "dev": _ETO_DEV, "test": _ETO_TEST},
    "agent_r": {"train": _agent_r_train(), "test": _AGENT_R_TEST},
}
"""list -> split -> task -> ranges of variations."""
