"""What there is to guess: secrets with all their names, and reading a guess out of a question.

Lists and facts are in `data/`; `objects.py` and `cities.py` make secrets and answers of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources

from agentc_backends.environments.guessing_games.questions import asked, plain

_OPENINGS = re.compile(
    r"^(?:(?:so|ok|okay|then|well|my (?:final )?guess is|i (?:will |would )?guess|final answer"
    r"|(?:is )?the answer(?: is)?)(?: that)? )*"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """`id` is the task; `names` all it may be called, in small letters as the list spells them,
    the usual one first; `group` is what splits are stratified by."""

    id: str
    names: tuple[str, ...]
    group: str


@dataclass(frozen=True, slots=True)
class Guessable:
    """All secrets of a game. `stem` matches what may stand before a name in a guess (`is it a`),
    and `tails` names what may stand after the name of a secret (its country)."""

    secrets: tuple[Secret, ...]
    stem: re.Pattern[str]
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _named: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for secret in self.secrets:
            for name in secret.names:
                for tail in ("", *self.tails.get(secret.id, ())):
                    self._named[plain(f"{name} {tail}")] = secret.id

    def names(self, secret: str) -> tuple[str, ...]:
        """All names of a secret by its id."""
        return next(one.names for one in self.secrets if one.id == secret)

    def named(self, text: str) -> str | None:
        """The id of the secret that a text is a name of."""
        return self._named.get(plain(text))

    def guess(self, question: str) -> str | None:
        """The id of the one secret that a question guesses and does nothing else."""
        text = _OPENINGS.sub("", asked(question), count=1)
        return self._named.get(text) or self._named.get(self.stem.sub("", text, count=1))


def lines_of(file: str) -> Iterator[str]:
    """Lines of a data file, without comments and empty ones."""
    folder = resources.files(__package__) / "data"
    for line in (folder / file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def cells(text: str, separator: str) -> list[str]:
    """Parts of a line, stripped."""
    return [part.strip() for part in text.split(separator)]


def words_of(text: str, words: Iterable[str]) -> str | None:
    """The first of `words` that stands in a plain text as a word of its own."""
    padded = f" {text} "
    return next((word for word in words if f" {word} " in padded), None)
