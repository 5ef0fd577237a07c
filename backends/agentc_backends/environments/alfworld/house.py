"""The parts of a game that never change: receptacles, objects, what they are, and their names.

Shared by all episodes of a game. Neighbours: `problem.py` (facts), `play.py` (what changes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from agentc_backends.environments.alfworld.problem import GameError, HouseholdGoal, Problem

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
