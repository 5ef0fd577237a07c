"""Games: packed files of them, their PDDL problems, and the house that a problem describes.

A row of `<part>.jsonl.xz` has `task`, `trial`, `task_desc`, `pddl_problem` and, where there is one,
`walkthrough`; `job_pack.py` writes such files, `invented.py` invents games."""

from __future__ import annotations

import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentc_backends.environments.alfworld.settings import SUFFIXES


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


# A game's PDDL problem: the facts at the start, and its goal. The benchmark's six goal formulas
# differ in types only, so no evaluator of formulas is needed.

GoalKind: TypeAlias = Literal["put", "two", "clean", "heat", "cool", "look"]

_FACT = re.compile(r"\(([^():]+)\)")
_TYPED = re.compile(r"\((object|receptacle)type \?\w+ (\w+)\)")


class GameError(ValueError):
    """A game is not one of ALFWorld's."""


@dataclass(frozen=True, slots=True)
class HouseholdGoal:
    """`target` is the receptacle type to end in; for `look`, the type of the lamp."""

    kind: GoalKind
    item: str
    target: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Facts by predicate, in lower case, in the order of the text."""

    facts: Mapping[str, tuple[tuple[str, ...], ...]]
    goal: HouseholdGoal

    def of(self, predicate: str) -> tuple[tuple[str, ...], ...]:
        return self.facts.get(predicate, ())


def read_problem(text: str) -> Problem:
    """A problem of the domain `alfred`. Raises GameError."""
    text = text.lower()
    start, goal = text.find("(:init"), text.find("(:goal")
    if not 0 <= start < goal:
        raise GameError("a PDDL problem with (:init ...) and then (:goal ...) is expected")
    facts: dict[str, list[tuple[str, ...]]] = {}
    for found in _FACT.findall(text[start:goal]):
        predicate, *arguments = found.split()
        if predicate != "=":
            facts.setdefault(predicate, []).append(tuple(arguments))
    return Problem({name: tuple(rows) for name, rows in facts.items()}, _read_goal(text[goal:]))


def _read_goal(text: str) -> HouseholdGoal:
    types = _TYPED.findall(text)
    items = [name for kind, name in types if kind == "object"]
    receptacles = [name for kind, name in types if kind == "receptacle"]
    if "(istoggled " in text:
        # The lamp's existential comes first, and then the object that is held.
        if len(items) == 2 and not receptacles:
            return HouseholdGoal("look", items[1], items[0])
    elif items and receptacles:
        return HouseholdGoal(_kind(text), items[0], receptacles[0])
    raise GameError("the goal is none of ALFWorld's six")


def _kind(text: str) -> GoalKind:
    if "?o2" in text:
        return "two"
    states: dict[str, GoalKind] = {"isclean": "clean", "ishot": "heat", "iscool": "cool"}
    return next((kind for state, kind in states.items() if f"({state} " in text), "put")


# The house, which never changes and is shared by all episodes of a game.

_PROPERTIES = (
    "openable",
    "pickupable",
    "cleanable",
    "heatable",
    "coolable",
    "toggleable",
    "sliceable",
    "isreceptacleobject",
)
_STATES = ("opened", "isclean", "ishot", "iscool", "istoggled", "issliced")


@dataclass(frozen=True, slots=True)
class House:
    """Ids are those of the problem, in lower case; `names` gives what texts call them.

    `place` and `at` map receptacles to locations and back; `can` holds (property, id); `fits`
    (receptacle type, object type); `inside` (inner, outer object); `start_states` (state, id).
    """

    goal: HouseholdGoal
    names: Mapping[str, str]
    object_types: Mapping[str, str]
    receptacle_types: Mapping[str, str]
    place: Mapping[str, str]
    at: Mapping[str, tuple[str, ...]]
    can: frozenset[tuple[str, str]]
    fits: frozenset[tuple[str, str]]
    inside: tuple[tuple[str, str], ...]
    start: str
    start_contents: tuple[tuple[str, str], ...]
    start_lying: frozenset[tuple[str, str]]
    start_states: frozenset[tuple[str, str]]

    def type_of(self, thing: str) -> str | None:
        return self.object_types.get(thing) or self.receptacle_types.get(thing)


def build_house(problem: Problem) -> House:
    """Raises GameError when the facts miss what a game needs."""
    place = _mapping(problem, "receptacleatlocation")
    start = _two(problem, "atlocation")
    if not place or not start:
        raise GameError("a game needs receptacles with locations, and one for the agent")
    object_types = _mapping(problem, "objecttype")
    at: dict[str, tuple[str, ...]] = {}
    for receptacle in sorted(place):
        at[place[receptacle]] = (*at.get(place[receptacle], ()), receptacle)
    return House(
        goal=problem.goal,
        names=_names(problem, {*object_types, *place}),
        object_types=object_types,
        receptacle_types=_mapping(problem, "receptacletype"),
        place=place,
        at=at,
        can=_pairs(problem, _PROPERTIES),
        fits=frozenset(_two(problem, "cancontain")),
        inside=_two(problem, "inreceptacleobject"),
        start=start[0][1],
        start_contents=tuple(row for row in _two(problem, "inreceptacle") if row[1] in place),
        start_lying=frozenset(_two(problem, "objectatlocation")),
        start_states=_pairs(problem, _STATES),
    )


def _mapping(problem: Problem, predicate: str) -> dict[str, str]:
    return dict(_two(problem, predicate))


def _two(problem: Problem, predicate: str) -> tuple[tuple[str, str], ...]:
    rows = problem.of(predicate)
    if any(len(row) != 2 for row in rows):
        raise GameError(f"{predicate} is a fact about two things")
    return tuple((row[0], row[1]) for row in rows)


def _pairs(problem: Problem, predicates: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    return frozenset((name, row[0]) for name in predicates for row in problem.of(name))


def _names(problem: Problem, things: set[str]) -> dict[str, str]:
    """`mug 2`: numbers of a word count down in the order of ids, as TextWorld hands them out."""
    marked = {
        word for rows in problem.facts.values() for row in rows for word in row if "_bar_" in word
    }
    ordered = sorted(word for word in things | marked if "_bar_" in word)
    left = Counter(_word(thing) for thing in ordered)
    names = {}
    for thing in ordered:
        names[thing] = f"{_word(thing)} {left[_word(thing)]}"
        left[_word(thing)] -= 1
    if missing := sorted(things - names.keys()):
        raise GameError(f"{missing[0]} is no id of ALFWorld's, such as mug_bar_01")
    return names


def _word(thing: str) -> str:
    # A basin bears the id of the sink or bathtub that it is part of.
    return thing.split("_bar_", 1)[0] + ("basin" if "basin" in thing else "")
