"""Token ids of prompts, computed piece by piece.

Prompts of a conversation continue one another. A tokenizer cuts a text at its added tokens before
anything else, and then each piece by itself, so that the tokens of a piece are computed once.
"""

from __future__ import annotations

import re
from typing import Any

_MOST = 8192
"""Pieces that are kept; then all are forgotten, so that a server's memory does not grow."""


class PieceTokens:
    """Token ids of texts, those of the tokenizer itself without the special tokens that it adds at
    the ends."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._cuts = _cuts(tokenizer)
        self._known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        if self._cuts is None:
            return self._whole(text)
        places = [match.start() for match in self._cuts.finditer(text)]
        if not places:
            return self._whole(text)
        found = self._whole(text[: places[0]]) if places[0] else []
        for start, end in zip(places, [*places[1:], len(text)], strict=True):
            # Behind its control token, as in the text: some tokenizers treat what a text begins
            # with in a way of its own.
            piece = text[start:end]
            known = self._known.get(piece)
            if known is None:
                if len(self._known) >= _MOST:
                    self._known.clear()
                known = self._known[piece] = self._whole(piece)
            found += known
        return found

    def _whole(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def _cuts(tokenizer: Any) -> re.Pattern[str] | None:
    """Finds the tokens that are cut out of a raw text, the longest where several begin; None for a
    tokenizer in which one of them takes away what stands before it, or looks at it."""
    if not getattr(tokenizer, "is_fast", False):
        return None
    added = [each for each in tokenizer.added_tokens_decoder.values() if not each.normalized]
    if not added or any(each.lstrip or each.single_word for each in added):
        return None
    texts = sorted((each.content for each in added), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts)))
