"""The two games, and their judges: from a question and the oracle's raw answer to what the player
reads.

`upstream_v1` keeps the rules of ArCHer's released environments, `strict_v2` those without what
players found to cheat or could not win. A judge sees one turn; `environment.py` counts them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentc_backends.environments.guessing_games.cities import city_table
from agentc_backends.environments.guessing_games.expert import Table
from agentc_backends.environments.guessing_games.objects import object_table
from agentc_backends.environments.guessing_games.secrets import Guessable, Secret, plain
from agentc_backends.environments.guessing_games.settings import GuessingSettings

INVALID = "Invalid Question."
REFUSAL = "That would give my city away."
UPSTREAM_REFUSAL = "I can't answer that question."
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the player reads, and whether the game is won. A question that is a `guess`, and does
    nothing else, is told from others by `strict_v2` alone."""

    answer: str
    won: bool
    guess: bool = False


def judge_object(
    judge: str, guessable: Guessable, secret: Secret, question: str, oracle: Callable[[], str]
) -> Verdict:
    """One turn of Twenty Questions. `oracle` gives the raw answer and is called at most once."""
    if judge == "upstream_v1":
        answer = _upstream_word(oracle())
        while question and not question[-1].isalpha():
            question = question[:-1]
        return Verdict(answer, answer == "Yes." and question.split(" ")[-1].lower() in secret.names)
    return _strict(guessable, secret, question, lambda: _strict_word(oracle()))


def judge_city(
    judge: str, guessable: Guessable, secret: Secret, question: str, oracle: Callable[[], str]
) -> Verdict:
    """One turn of Guess My City. `oracle` gives the raw answer and is called at most once."""
    if judge == "upstream_v1":
        answer, city = oracle(), secret.names[0]
        shown = UPSTREAM_REFUSAL if city in answer.lower() else answer
        return Verdict(shown, city in question.lower())
    return _strict(guessable, secret, question, lambda: _guarded(secret, oracle()))


def _strict(
    guessable: Guessable, secret: Secret, question: str, answer: Callable[[], str]
) -> Verdict:
    """A guess names one secret and is judged by its name; the oracle has no say in it."""
    if len(question) > _LONGEST or not re.search(r"\w", question):
        return Verdict(INVALID, won=False)
    guess = guessable.guess(question)
    if guess is not None:
        return Verdict("Yes." if guess == secret.id else "No.", guess == secret.id, guess=True)
    return Verdict(answer(), won=False)


def _upstream_word(raw: str) -> str:
    """`I do not know` is a no here."""
    lower = raw.lower()
    return "Yes." if "yes" in lower else "No." if "no" in lower else INVALID


def _strict_word(raw: str) -> str:
    found = re.match(r"\W*(yes|no)\b", raw.lower())
    return f"{found[1].capitalize()}." if found else INVALID


def _guarded(secret: Secret, raw: str) -> str:
    """The answer, unless it says any name of the city, spelled out or not."""
    text = plain(raw)
    # `L i m a` and `L-i-m-a` are names too.
    spelled = re.sub(r"\b(\w) (?=\w\b)", r"\1", text)
    said = f" {text} | {spelled} "
    if any(f" {plain(name)} " in said for name in secret.names):
        return REFUSAL
    return " ".join(raw.split()) or INVALID


class GuessTable(Table, Protocol):
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
    load: Callable[[], GuessTable]
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
