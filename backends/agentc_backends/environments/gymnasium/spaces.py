"""Spaces as text: actions are read out of texts, observations become texts. Spaces without either
are refused.

A text that is no action is answered (`NotAnActionError`) and never reaches the environment."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from gymnasium import Space
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Text,
    Tuple,
)
from gymnasium.spaces import (
    Sequence as SequenceSpace,
)

from agentc_backends.environments.external.environment import NotAnActionError
from agentc_backends.environments.gymnasium.settings import Colours


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
        f"its actions are {space}, and texts are read only for Discrete and Text spaces: wrap it "
        "in your own environment with one of these (`package.module:Name-v0`)"
    )


def _same(text: str) -> str:
    return " ".join(text.split()).casefold()


# Texts stay as they are. Numbers with a fraction have that many significant digits, those without
# have none of a fraction; arrays and tuples are lists, a mapping at the top is a line for each key.
# Pictures have no text, so they are refused beforehand.

MOST_NUMBERS = 1024
"""In one array: more is a picture or a table that no agent reads."""

_COLOURED = re.compile(r"((?:\x1b\[[0-9;]*m)+)(.*?)\x1b\[0?m", re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def check_describable(space: Space[Any], where: str = "its observations") -> None:
    """Raises ValueError where values of the space have no text."""
    match space:
        case Box() if len(space.shape) >= 3 or math.prod(space.shape) > MOST_NUMBERS:
            what = "pictures" if len(space.shape) >= 2 else "long arrays"
            raise ValueError(
                f"{where} are {what} ({space.dtype}, shape {space.shape}), which have no text: "
                "take `observation: ansi` where it renders text, or `none` where `info` says "
                "enough, or wrap it in an environment whose observations are texts or numbers"
            )
        case Dict():
            for name, part in space.spaces.items():
                check_describable(part, f"{where} `{name}`")
        case Tuple():
            for number, part in enumerate(space.spaces):
                check_describable(part, f"{where} [{number}]")
        case SequenceSpace():
            check_describable(space.feature_space, f"{where} []")
        case Box() | Discrete() | MultiBinary() | MultiDiscrete() | Text():
            return
        case _:
            raise ValueError(f"{where} are {space}, of which no text is made")


def observation_text(value: Any, digits: int) -> str:
    """The text of an observation. Raises TypeError for a value without one."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        lines = (
            (name, part if isinstance(part, str) else _inner(part, digits))
            for name, part in value.items()
        )
        return "\n".join(f"{name}: {line}" for name, line in lines)
    return _inner(value, digits)


def _inner(value: Any, digits: int) -> str:
    if isinstance(value, (bool, numpy.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, numpy.integer)):
        return str(int(value))
    if isinstance(value, (float, numpy.floating)):
        return f"{float(value):.{digits}g}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "none"
    if isinstance(value, numpy.ndarray):
        if value.size > MOST_NUMBERS:
            raise TypeError(f"an array of shape {value.shape} has no text")
        return _inner(value.tolist() if value.ndim else value.item(), digits)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_inner(part, digits) for part in value)}]"
    if isinstance(value, Mapping):
        parts = (f"{name}: {_inner(part, digits)}" for name, part in value.items())
        return f"{{{', '.join(parts)}}}"
    raise TypeError(f"a value of type {type(value).__name__} has no text")


def uncoloured(text: str, colours: Colours) -> str:
    """A rendering without terminal codes. Where a thing is may be told by its colour alone, so a
    coloured stretch is `[X]` (`brackets`), `<red>X</red>` (`names`) or X (`drop`)."""

    def replaced(found: re.Match[str]) -> str:
        inside = _ESCAPE.sub("", found[2])
        name = _colour(found[1])
        if colours == "drop" or name is None:
            return inside
        return f"[{inside}]" if colours == "brackets" else f"<{name}>{inside}</{name}>"

    lines = _ESCAPE.sub("", _COLOURED.sub(replaced, text)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _colour(codes: str) -> str | None:
    """The last colour that the codes set, of the text or of what is behind it."""
    numbers = [int(number) for number in re.findall(r"[0-9]+", codes)]
    named = [n % 10 for n in numbers if n // 10 in (3, 4, 9, 10) and n % 10 < len(_NAMES)]
    return _NAMES[named[-1]] if named else None
