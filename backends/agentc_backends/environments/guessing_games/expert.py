"""The expert: asks the question that halves what is left best, and guesses when two are left, or
one where a wrong guess ends the game; with `guesses` it tries its luck before.

It plays against the table of the game; it knows no secret, only the answers so far.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentc_backends.environments.server.world import ExpertAction

_GUESS_AT = 2
_GUESSES = 0.35
"""Of the questions of a game that is not played well."""
_NEAR_BEST = 0.9
"""Seeds other than 0 draw among the questions with at least this share of the best one's split."""


class Table(Protocol):
    """What `objects.py` and `cities.py` give."""

    @property
    def questions(self) -> tuple[str, ...]: ...

    def answer(self, secret: str, question: str) -> str | None: ...

    def guess_of(self, secret: str) -> str: ...


@dataclass(slots=True)
class GuessingPlanner:
    """Plans games of one table; `secrets` are all that a secret may be."""

    table: Table
    secrets: tuple[str, ...]
    skill: float = 1.0
    questions: int = 20
    guesses: float = 0.0
    final: bool = False
    _yes: dict[str, frozenset[str]] = field(default_factory=dict)

    def plan(self, secret: str, seed: int) -> tuple[ExpertAction, ...]:
        """The questions of a whole game, the last of which guesses the secret; one that is not
        played well may be lost, and so may one of luck where a wrong guess is `final`."""
        chance = random.Random(f"skill {seed} {secret}")
        if self.skill < 1 and chance.random() >= self.skill:
            return tuple(self._poor_game(secret, chance))
        luck = random.Random(f"luck {seed} {secret}")
        left, turns = list(self.secrets), list[ExpertAction]()
        while True:
            lucky = len(left) > 1 and luck.random() < self.guesses
            enough = len(left) <= (1 if self.final else _GUESS_AT)
            question = None if lucky or enough else self._best(left, seed)
            if question is None:
                pick = luck if lucky else self._chance(left, seed)
                guess = pick.choice(left) if lucky or seed else left[0]
                thought = "I try my luck." if lucky else _thought(len(left))
                turns.append(ExpertAction(self.table.guess_of(guess), thought))
                if guess == secret or self.final:
                    return tuple(turns)
                left.remove(guess)
                continue
            turns.append(ExpertAction(question, _thought(len(left))))
            yes = self._answered_yes()[question]
            left = [one for one in left if (one in yes) == (secret in yes)]

    def _poor_game(self, secret: str, chance: random.Random) -> Iterator[ExpertAction]:
        telling = [
            question for question, yes in self._answered_yes().items()
            if 0 < len(yes) < len(self.secrets)
        ]  # fmt: skip
        for _ in range(self.questions):
            guess = chance.choice(self.secrets) if chance.random() < _GUESSES else None
            if guess is None:
                yield ExpertAction(chance.choice(telling), "I ask something.")
                continue
            yield ExpertAction(self.table.guess_of(guess), "I guess.")
            if guess == secret or self.final:
                return

    def _best(self, left: Sequence[str], seed: int) -> str | None:
        """The question whose smaller side is largest: the greedy choice by entropy."""
        sides = {
            question: min(n := sum(one in yes for one in left), len(left) - n)
            for question, yes in self._answered_yes().items()
        }
        most = max(sides.values())
        if most == 0:
            return None
        near = [question for question, side in sides.items() if side >= most * _NEAR_BEST]
        first = next(question for question in near if sides[question] == most)
        return first if not seed else self._chance(left, seed).choice(near)

    def _answered_yes(self) -> dict[str, frozenset[str]]:
        if not self._yes:
            answer: Callable[[str, str], str | None] = self.table.answer
            self._yes = {
                question: frozenset(s for s in self.secrets if answer(s, question) == "Yes.")
                for question in self.table.questions
            }
        return self._yes

    def _chance(self, left: Sequence[str], seed: int) -> random.Random:
        # What is left decides, not the secret: the expert must not know it.
        return random.Random(f"{seed} {' '.join(left)}")


def _thought(left: int) -> str:
    if left == 1:
        return "Only one is left."
    if left <= _GUESS_AT:
        return f"{left} are left: I guess."
    return f"{left} are left."
