"""Games: what a task's id stands for. Packed ones are read from `<part>.jsonl.xz`, a row each.

A row has `task`, `trial`, `task_desc`, `pddl_problem` and, where there is one, `walkthrough`.
Neighbours: `job_pack.py` writes such files, `invented.py` makes games of our own.
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentc_backends.environments.alfworld.house import House, build_house
from agentc_backends.environments.alfworld.problem import GameError, read_problem
from agentc_backends.environments.alfworld.sizes import SUFFIXES


@dataclass(frozen=True, slots=True)
class HouseholdGame:
    """`packed` is the problem, compressed: thousands of them are held at a time."""

    task_id: str
    description: str
    walkthrough: tuple[str, ...]
    packed: bytes

    @property
    def trial(self) -> str:
        return self.task_id.rpartition("/")[2]

    def house(self) -> House:
        """What the problem says; the last ones used are kept. Raises GameError."""
        return _house(self.packed)


def make_game(
    task: str, trial: str, description: str, problem: str, walkthrough: Iterable[str] = ()
) -> HouseholdGame:
    # The declarations before (:init make half of a problem and say nothing new.
    start = max(problem.lower().find("(:init"), 0)
    packed = zlib.compress(problem[start:].encode(), 1)
    return HouseholdGame(f"{task}/{trial}", description, tuple(walkthrough), packed)


def read_games(content: bytes, name: str) -> Iterator[HouseholdGame]:
    """The games of a packed file. Raises GameError."""
    try:
        text = lzma.decompress(content) if name.endswith(".xz") else content
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield _game(json.loads(line), f"line {number} of {name}")
    except (lzma.LZMAError, ValueError, RecursionError) as error:
        if isinstance(error, GameError):
            raise
        raise GameError(f"{name} is no packed file of games: {error}") from None


def part_file(folder: Path, part: str) -> Path:
    """Where a part's games are. Raises GameError."""
    for suffix in SUFFIXES:
        if (folder / f"{part}{suffix}").is_file():
            return folder / f"{part}{suffix}"
    raise GameError(f"there is no {part}.jsonl.xz in {folder}")


@lru_cache(maxsize=256)
def _house(packed: bytes) -> House:
    return build_house(read_problem(zlib.decompress(packed).decode()))


def _game(row: Any, place: str) -> HouseholdGame:
    match row:
        case {
            "task": str(task),
            "trial": str(trial),
            "task_desc": str(description),
            "pddl_problem": str(problem),
        }:
            return make_game(task, trial, description, problem, _walkthrough(row))
    raise GameError(f"{place} lacks one of task, trial, task_desc, pddl_problem")


def _walkthrough(row: Mapping[str, Any]) -> list[str]:
    steps = row.get("walkthrough") or []
    return [str(step) for step in steps] if isinstance(steps, list) else []
