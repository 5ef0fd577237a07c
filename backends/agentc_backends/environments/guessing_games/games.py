"""The two games side by side.

`environment.py` plays what is put together here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentc_backends.environments.guessing_games.cities import city_table
from agentc_backends.environments.guessing_games.expert import Table
from agentc_backends.environments.guessing_games.judges import Verdict, judge_city, judge_object
from agentc_backends.environments.guessing_games.objects import object_table
from agentc_backends.environments.guessing_games.secrets import Guessable, Secret
from agentc_backends.environments.guessing_games.settings import GuessingSettings


class KnownTable(Table, Protocol):
    """A table, and all that may be guessed in its game."""

    @property
    def guessable(self) -> Guessable: ...


Judge = Callable[[str, Guessable, Secret, str, Callable[[], str]], Verdict]


@dataclass(frozen=True, slots=True)
class GuessingGame:
    """What differs between the games; `hidden` is what a critic may know."""

    name: str
    title: str
    opening: str
    hidden: str
    load: Callable[[], KnownTable]
    judge: Judge


GAMES: Mapping[str, GuessingGame] = {
    "twenty_questions": GuessingGame(
        "twenty_questions",
        "Twenty Questions",
        "I am thinking of an object. Find out which by asking; I answer with yes or no. You have "
        "{questions} questions. To guess, ask whether it is that object.",
        "The object to be guessed is: {secret}",
        object_table,
        judge_object,
    ),
    "guess_my_city": GuessingGame(
        "guess_my_city",
        "Guess My City",
        "I come from a large city. Find out which by asking about it. You have {questions} "
        "questions. To guess, ask whether it is that city.",
        "The city to be guessed is: {secret}",
        city_table,
        judge_city,
    ),
}


def secrets_in_play(game: GuessingGame, settings: GuessingSettings) -> tuple[Secret, ...]:
    """All, or ArCHer's subset of ten: every tenth of the first hundred, from the second on."""
    secrets = game.load().guessable.secrets
    if game.name == "twenty_questions" and settings.objects == "subset":
        return secrets[1:100:10]
    return secrets
