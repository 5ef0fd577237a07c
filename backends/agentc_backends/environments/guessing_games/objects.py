"""Twenty Questions' objects and the table of what is true of them, as an oracle.

Categories, names and facts are read from `data/objects.txt` and `data/object_facts.txt`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agentc_backends.environments.guessing_games.secrets import (
    Guessable,
    Secret,
    cells,
    claim,
    lines_of,
    question_body,
)

_STEM = re.compile(
    r"^(?:(?:is|are|could|might|would|can) (?:it|they|this|that|the (?:object|item|thing|word)) "
    r"(?:be )?)?(?:a |an |the |some )?(?:pair of (?=gloves|shoes|boots|socks|pants))?"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A yes/no question, the claims that mean the same, and the ids of which it is true."""

    question: str
    wordings: re.Pattern[str]
    holds: frozenset[str]


class ObjectTable:
    """Answers questions about objects from the table of facts."""

    def __init__(self) -> None:
        groups: dict[str, list[str]] = {}
        secrets = []
        for line in lines_of("objects.txt"):
            category, _, entries = line.partition(": ")
            for entry in cells(entries, ","):
                names = tuple(cells(entry, ";"))
                secrets.append(Secret(names[0], names, category))
                groups.setdefault(f"@{category}", []).append(names[0])
        groups["@*"] = [secret.id for secret in secrets]
        self.guessable = Guessable(tuple(secrets), _STEM)
        self.facts = tuple(_fact(line, groups) for line in lines_of("object_facts.txt"))
        self._found: dict[str, Fact | None] = {}

    @property
    def questions(self) -> tuple[str, ...]:
        """One question for each fact."""
        return tuple(fact.question for fact in self.facts)

    def guess_of(self, secret: str) -> str:
        """A question that guesses a secret."""
        if f"pair of {secret}" in self.guessable.names(secret):
            return f"Is it a pair of {secret}?"
        if secret == "peas":
            return "Is it peas?"
        return f"Is it {'an' if secret[0] in 'aeiou' else 'a'} {secret}?"

    def answer(self, secret: str, question: str) -> str | None:
        """`Yes.` or `No.`; None where the table has no answer."""
        guess = self.guessable.guess(question)
        if guess is not None:
            return "Yes." if guess == secret else "No."
        fact = self._fact(question_body(question))
        if fact is None:
            return None
        return "Yes." if secret in fact.holds else "No."

    def _fact(self, question: str) -> Fact | None:
        if question not in self._found:
            if len(self._found) > 10000:
                self._found.clear()
            text = claim(question)
            self._found[question] = next(
                (f for f in self.facts if f.wordings.fullmatch(text)), None
            )
        return self._found[question]


@lru_cache(maxsize=1)
def object_table() -> ObjectTable:
    """The table, read once."""
    return ObjectTable()


def _fact(line: str, groups: dict[str, list[str]]) -> Fact:
    # The wordings are full of `|`; the columns' separators have spaces on both sides.
    question, wordings, listed = cells(line, " | ")
    holds: set[str] = set()
    for part in cells(listed, ","):
        name = part.removeprefix("-")
        if name not in groups and name not in groups["@*"]:
            raise ValueError(f"object_facts.txt: {question} names an unknown object {name!r}")
        chosen = set(groups.get(name, [name]))
        holds = holds - chosen if part.startswith("-") else holds | chosen
    return Fact(question, re.compile(wordings), frozenset(holds))
