"""FolderFault: what is wrong with a model directory, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MOST_NAMES = 3


@dataclass(frozen=True)
class FolderFault:
    """What is wrong, and what to do about it."""

    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.message}; {self.fix}"


def shortened(names: Sequence[str]) -> str:
    """A few of many names."""
    text = ", ".join(name[:120] for name in names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return text if more <= 0 else f"{text} and {more} more"
