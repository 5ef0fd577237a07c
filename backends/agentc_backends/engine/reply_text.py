"""Tokens of a reply -> its text, and where a stop text ends it.

Used by the engine's process (after each token) and by the server (for the reply).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_WINDOW_TOKENS = 16
"""Tokens decoded beyond the longest stop text when looking for one (a token may hold a part of a
character only)."""


def decode(tokenizer: Any, tokens: Sequence[int], *, special: bool) -> str:
    """The text of tokens, with or without special ones."""
    text: str = tokenizer.decode(
        list(tokens), skip_special_tokens=not special, clean_up_tokenization_spaces=False
    )
    return text


def stop_test(tokenizer: Any, stops: Sequence[str]) -> Callable[[list[int]], bool]:
    """Whether the last of some tokens has completed a stop text."""
    window = max(len(stop.encode()) for stop in stops) + _WINDOW_TOKENS

    def finished(tokens: list[int]) -> bool:
        tail = decode(tokenizer, tokens[-window:], special=False)
        return any(stop in tail for stop in stops)

    return finished


def before_stops(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text up to the first stop text in it, and whether there is one."""
    cuts = [at for stop in stops if (at := text.find(stop)) >= 0]
    return (text[: min(cuts)], True) if cuts else (text, False)
