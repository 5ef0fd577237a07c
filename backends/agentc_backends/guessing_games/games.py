"""The two games side by side, and the rules that a spec may choose.

`environment.py` plays what is put together here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentc_backends.guessing_games.cities import city_table
from agentc_backends.guessing_games.expert import Table
from agentc_backends.guessing_games.judges import Verdict, judge_city, judge_object
from agentc_backends.guessing_games.objects import object_table
from agentc_backends.guessing_games.secrets import Guessable, Secret

REWARDS = ("questions_left", "per_question")
OBSERVATIONS = ("answer", "transcript")
SPLITTINGS = ("held_out", "together")
OBJECTS = ("all", "subset")


class KnownTable(Table, Protocol):
    """A table, and all that may be guessed in its game."""

    @property
    def guessable(self) -> Guessable: ...


Judge = Callable[[str, Guessable, Secret, str, Callable[[], str]], Verdict]


@dataclass(frozen=True, slots=True)
class Rules:
    """The values that decide texts and rewards; all are part of the identity."""

    judge: str = "strict_v2"
    questions: int = 20
    reward: str = "questions_left"
    observation: str = "answer"
    splits: str = "held_out"
    objects: str = "all"

    def __post_init__(self) -> None:
        if self.questions < 1:
            raise ValueError("a game has at least one question")

    @property
    def reward_range(self) -> tuple[float, float]:
        """Of an episode: `questions_left` is the paper's return plus the number of questions."""
        if self.reward == "per_question":
            return (-float(self.questions), 0.0)
        return (0.0, float(self.questions))

    @property
    def success_at(self) -> float:
        return self.reward_range[0] + 1.0


@dataclass(frozen=True, slots=True)
class Game:
    """What differs between the games."""

    name: str
    title: str
    opening: str
    load: Callable[[], KnownTable]
    judge: Judge


GAMES: Mapping[str, Game] = {
    "twenty_questions": Game(
        "twenty_questions",
        "Twenty Questions",
        "I am thinking of an object. Find out which by asking; I answer with yes or no. You have "
        "{questions} questions. To guess, ask whether it is that object.",
        object_table,
        judge_object,
    ),
    "guess_my_city": Game(
        "guess_my_city",
        "Guess My City",
        "I come from a large city. Find out which by asking about it. You have {questions} "
        "questions. To guess, ask whether it is that city.",
        city_table,
        judge_city,
    ),
}


def secrets_in_play(game: Game, rules: Rules) -> tuple[Secret, ...]:
    """All, or ArCHer's subset of ten: every tenth of the first hundred, from the second on."""
    secrets = game.load().guessable.secrets
    if game.name == "twenty_questions" and rules.objects == "subset":
        return secrets[1:100:10]
    return secrets
