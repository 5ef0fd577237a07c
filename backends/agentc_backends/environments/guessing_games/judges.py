"""Who wins: from a question and the oracle's raw answer to what the player reads.

`upstream_v1` keeps the rules of ArCHer's released environments, `strict_v2` those without what
players found to cheat or could not win. A judge sees one turn; `game.py` counts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from agentc_backends.environments.guessing_games.questions import plain
from agentc_backends.environments.guessing_games.secrets import Guessable, Secret

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
