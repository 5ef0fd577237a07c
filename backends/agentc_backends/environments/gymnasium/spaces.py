"""Reads actions of a space out of texts, and refuses spaces that no text can be read for.

A text that is no action is answered (`NotAnActionError`) and never reaches the environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium import Space
from gymnasium.spaces import Discrete, Text

from agentc_backends.environments.foreign.not_an_action import NotAnActionError


class DiscreteActions:
    """Numbers, or the names that a spec gives them; case and spaces around make no difference."""

    def __init__(self, space: Discrete[Any], names: Sequence[str]) -> None:
        """Raises ValueError where the names are not as many as the actions."""
        first, count = int(space.start), int(space.n)
        if names and len(names) != count:
            raise ValueError(f"`actions` names {len(names)}, but the environment has {count}")
        words = names or [str(number) for number in range(first, first + count)]
        self._numbers = {_same(word): first + at for at, word in enumerate(words)}
        if names or count <= 12:
            self.told = "Actions: " + ", ".join(words)
        else:
            self.told = f"Actions: {first} to {first + count - 1}"

    def read(self, text: str) -> Any:
        """Raises NotAnActionError."""
        number = self._numbers.get(_same(text))
        if number is None:
            raise NotAnActionError(f"`{text.strip()[:80]}` is no action. {self.told}")
        return number


class TextActions:
    """The text as it is, where the space holds it."""

    told = ""

    def __init__(self, space: Text) -> None:
        self._space = space

    def read(self, text: str) -> Any:
        """Raises NotAnActionError."""
        if not self._space.contains(text):
            raise NotAnActionError(self._complaint(text))
        return text

    def _complaint(self, text: str) -> str:
        space = self._space
        strange = sorted(set(text) - set(space.character_set))
        if strange:
            return f"An action cannot hold {' '.join(map(repr, strange[:8]))}."
        return (
            f"An action has {space.min_length} to {space.max_length} characters, "
            f"this one has {len(text)}."
        )


Actions = DiscreteActions | TextActions


def actions_of(space: Space[Any], names: Sequence[str]) -> Actions:
    """Raises ValueError for a space whose actions no text says."""
    if isinstance(space, Discrete):
        return DiscreteActions(space, names)
    if names:
        raise ValueError(f"`actions` names those of a Discrete space, and this one is {space}")
    if isinstance(space, Text):
        return TextActions(space)
    raise ValueError(
        f"its actions are {space}, and texts are read for Discrete and Text spaces alone: wrap it "
        "in an environment of your own with one of these (`package.module:Name-v0`)"
    )


def _same(text: str) -> str:
    return " ".join(text.split()).casefold()
