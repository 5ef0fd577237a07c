"""Reads a game's PDDL problem: the facts at the start, and which of the six goals it has.

The benchmark's games have six goal formulas that differ in types only, so that no evaluator of
formulas is needed. Neighbours: `house.py` makes the facts into a world.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

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
