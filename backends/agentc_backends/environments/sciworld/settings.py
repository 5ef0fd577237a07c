"""ScienceWorld's settings: what a spec may write, and splits of variations.

Splits are the simulator's own, published lists, files, or ranges of variations; disjoint by task
identity (task and variation), never by index. They are resolved while a spec is compiled, so that a
plan holds the variations themselves and keys follow them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

from agentc.program.settings import setting
from agentc_backends.environments.sciworld.tasks import (
    TASKS,
    Task,
    agentgym_tasks,
    simulator_split,
    split_task_id,
    task_id,
    task_named,
)
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import (
    ReadFile,
    SplitError,
    check_disjoint,
    check_names,
    content_of,
    excluded_splits,
    fold_numbers,
    unfold_numbers,
)

Variation: TypeAlias = tuple[str, int]
Text: TypeAlias = dict[str, str]
"""Task name -> ranges of variations, in the order of TASKS: `{"boil": "0-13,20"}`."""

OWN = ("train", "dev", "test")
FORMATS = ("eto", "agentgym", "agentgym_without_2_3")
DEFAULT: Mapping[str, Any] = {name: {"own": name} for name in OWN}
_RANGES = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")
_EXPECTED = (
    "expected `{own: train|dev|test}`, `{list: eto|agent_r}`, `{file: path, format: eto|agentgym|"
    "agentgym_without_2_3}` or `{variations: {boil: 0-13}}`"
)


def read_splits(written: Mapping[str, Any], only: Sequence[str], read_file: ReadFile) -> dict[
    str, Text
]:  # fmt: skip
    """The variations of each split. `only` names the tasks to keep; empty: all.

    Raises SplitError.
    """
    check_names(written)
    kept = {_task(name).name for name in only} or {task.name for task in TASKS}
    found: dict[str, list[Variation]] = {}
    for name, value in written.items():
        found[name] = [each for each in _read(name, value, read_file) if each[0] in kept]
    for name, value in written.items():
        left_out = {v for other in excluded_splits(name, value, found) for v in found[other]}
        found[name] = [each for each in found[name] if each not in left_out]
        if not found[name]:
            raise SplitError(f"the split `{name}` holds no task")
    check_disjoint(found, lambda shared: f"{len(shared)} variations, such as {task_id(*shared[0])}")
    return {name: as_text(variations) for name, variations in found.items()}


def as_text(variations: Iterable[Variation]) -> Text:
    """Variations with runs folded, tasks in the benchmark's order."""
    by_task: dict[str, list[int]] = {}
    for task, variation in variations:
        by_task.setdefault(task, []).append(variation)
    return {t.name: fold_numbers(sorted(by_task[t.name])) for t in TASKS if t.name in by_task}


def task_ids(text: Text) -> tuple[str, ...]:
    """The task ids of a split: the first variation of every task, then the second of every task,
    and so on, so that the first N tasks of a split are of many kinds."""
    # In the benchmark's order: a text that was in JSON has none.
    known = [(task.name, text[task.name]) for task in TASKS if task.name in text]
    columns = [[task_id(task, v) for v in unfold_numbers(ranges)] for task, ranges in known]
    return tuple(each for row in zip_longest(*columns) for each in row if each is not None)


def in_a_line(text: Text) -> str:
    """`boil 0-13,20; melt 0-13`"""
    return "; ".join(f"{task} {ranges}" for task, ranges in text.items())


def from_line(line: str) -> Text:
    """The inverse of `in_a_line`."""
    return dict(part.split(" ", 1) for part in line.split("; "))


def size(text: Text) -> int:
    return sum(len(unfold_numbers(ranges)) for ranges in text.values())


def _read(name: str, value: Any, read_file: ReadFile) -> list[Variation]:
    # Here, so that specs without ScienceWorld do not wait for it.
    from agentc_backends.environments.sciworld.tasks import LISTS

    match value:
        case {"own": str(own), **rest} if own in OWN:
            found = [(task.name, v) for task in TASKS for v in simulator_split(task, own)]
        case {"list": str(word), **rest} if word in LISTS:
            if name not in LISTS[word]:
                raise SplitError(
                    f"the list `{word}` has no split `{name}`; it has {', '.join(LISTS[word])}"
                )
            found = _of_text(name, LISTS[word][name])
        case {"variations": dict(ranges), **rest}:
            found = _of_text(name, ranges)
        case {"file": str(path), "format": str(form), **rest} if form in FORMATS:
            found = _of_file(name, path, form, read_file)
        case _:
            raise SplitError(f"the split `{name}` is {json.dumps(value)[:80]}; {_EXPECTED}")
    if unknown := [key for key in rest if key != "except"]:
        raise SplitError(f"the split `{name}` has an unknown key `{unknown[0]}`; {_EXPECTED}")
    if len(set(found)) < len(found):
        twice = next(each for each in found if found.count(each) > 1)
        raise SplitError(f"the split `{name}` holds {task_id(*twice)} twice")
    return found


def _of_text(name: str, text: Mapping[str, Any]) -> list[Variation]:
    found: list[Variation] = []
    for written, ranges in text.items():
        task = _task(written)
        if not _RANGES.fullmatch(str(ranges)):
            raise SplitError(
                f"the split `{name}`: {ranges!r} of {written} are no variations; write `0-13,20`"
            )
        found += [_checked(name, task, variation) for variation in unfold_numbers(str(ranges))]
    return found


def _of_file(name: str, path: str, form: str, read_file: ReadFile) -> list[Variation]:
    content = content_of(name, path, read_file)
    try:
        items = json.loads(content)
    except (ValueError, RecursionError):
        raise SplitError(f"the split `{name}`: {path} is no JSON") from None
    if not isinstance(items, list):
        raise SplitError(f"the split `{name}`: {path} is no list")
    if form == "eto":
        return [_of_pair(name, path, item) for item in items]
    counted = agentgym_tasks(with_unknown_melting_points=form == "agentgym")
    return [_of_index(name, path, item, counted) for item in items]


def _of_pair(name: str, path: str, item: Any) -> Variation:
    match item:
        case [str(written), int(variation)] if not isinstance(variation, bool):
            return _checked(name, _task(written), variation)
    raise SplitError(
        f"the split `{name}`: {json.dumps(item)[:60]} in {path} is not [task, variation]"
    )


def _of_index(name: str, path: str, item: Any, counted: Sequence[str]) -> Variation:
    written = item.get("item_id") if isinstance(item, dict) else item
    match = re.fullmatch(r"(?:sciworld_)?(\d{1,6})", str(written))
    if match is None or int(match[1]) >= len(counted):
        raise SplitError(
            f"the split `{name}`: {json.dumps(item)[:60]} in {path} is no index below "
            f"{len(counted)}, such as sciworld_31"
        )
    found = split_task_id(counted[int(match[1])])
    assert found is not None
    return found[0].name, found[1]


def _checked(name: str, task: Task, variation: int) -> Variation:
    if not 0 <= variation < task.variations:
        raise SplitError(
            f"the split `{name}` holds {task_id(task.name, variation)}, but {task.name} has "
            f"variations 0 to {task.variations - 1}"
        )
    return task.name, variation


def _task(written: str) -> Task:
    task = task_named(written)
    if task is None:
        names = ", ".join(each.name for each in TASKS)
        raise SplitError(f"ScienceWorld has no task {written!r}; it has {names}")
    return task


SIMPLIFICATIONS = (
    "easy",
    "teleportAction",
    "openDoors",
    "openContainers",
    "selfWateringFlowerPots",
    "noElectricalAction",
)


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class SciworldSettings:
    simplifications: tuple[str, ...] = setting(
        f"ScienceWorld's simplifications: {', '.join(SIMPLIFICATIONS[1:])}; `easy` by itself is "
        "all "
        "of them but openContainers (and, in electrical tasks, noElectricalAction). ETO plays with "
        "easy, AgentGym without any.", ("easy",))
    # What a server is told are variations, however they are written.
    splits: Mapping[str, Any] = setting(
        "Variations of each split: `{own: train}` (the simulator's own), `{list: eto}` or `{list: "
        "agent_r}` (published lists), `{file: path, format: eto}` ([task, variation] pairs; "
        "`agentgym` and `agentgym_without_2_3`: indices) or `{variations: {boil: 0-13}}`, each "
        "with `except: [other split]`. Splits that share a variation are refused.", DEFAULT,
        rule=False)
    tasks: tuple[str, ...] = setting(
        "Keep only these tasks, by name or number (`boil`, `4-2`); empty: all.", (), served=False,
        rule=False)
    step_limit: Literal["per_task", "uniform", "none"] = setting(
        "Actions until an episode ends: ETO's for each task (10 to 120), 100 for all, or none "
        "(gold paths may take more).", "per_task")
    score: Literal["best", "last"] = setting(
        "An episode's reward: the best score reached, as ETO has it, or the last.", "best")
    negative: Literal["keep", "zero"] = setting(
        "Reward of a fatal mistake (focusing on the wrong thing), which ends the episode: -1, or "
        "0.", "keep")
    opening: Literal["task", "task_and_room"] = setting(
        "First observation: only the task, or with what the agent sees.", "task_and_room")
    snap_actions: bool = setting(
        "Take an action that is not legal as the legal one that shares most words with it.", False)
    expert_thoughts: Literal["plain", "none"] = setting(
        "Thoughts of the simulator's own agent, which has none: a plain sentence made of each "
        "action, or none.", "plain")
    processes: int | None = setting(
        "JVMs at a time; null: one for each core.", None, minimum=1, identity="placement")
    heap_mb: int = setting("Memory of each JVM.", 512, minimum=128, identity="placement")
    loads_each: int = setting("Episodes until a JVM is replaced.", 400, in_spec=False)

    @property
    def simplified(self) -> str:
        """As the simulator takes them."""
        return ",".join(self.simplifications)

    def rules(self) -> dict[str, Any]:
        """What the identity says of them."""
        return {**rules_of(self), "simplifications": self.simplified}
