"""The text of a reply while its tokens come: what can be told of it, and never has to be unsaid.

A token may hold a part of a character, and a text may be the beginning of a stop text; both are
held back. What was told and the rest are together the text of the whole reply, letter for letter.
Neighbours: `chunks.py` (the user), `text_model.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentc_backends.openai_api.text_model import Choice

_PART = "\ufffd"
"""What a decoder writes for bytes that are no character, or are not one yet."""


class GrowingText:
    """One choice. `text_of` decodes tokens of a reply (`TextModel.reply_text`)."""

    def __init__(self, text_of: Callable[[Sequence[int]], str], stops: Sequence[str]) -> None:
        self._text_of = text_of
        self._stops = tuple(stops)
        self._tokens: list[int] = []
        self._start = self._read = 0
        self._held = ""
        self._told = 0
        self._stopped = False

    def add(self, tokens: Sequence[int]) -> str:
        """The text that is certain with these tokens; often none."""
        self._tokens += tokens
        if self._stopped:
            return ""
        # Decoded behind the tokens of the last text: some decoders treat a beginning in a way of
        # its own.
        known = self._text_of(self._tokens[self._start : self._read])
        whole = self._text_of(self._tokens[self._start :])
        if whole.endswith(_PART) or not whole.startswith(known):
            return ""
        self._start, self._read = self._read, len(self._tokens)
        self._held += whole[len(known) :]
        cuts = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        self._stopped = bool(cuts)
        certain = min(cuts) if cuts else len(self._held) - self._beginning_of_a_stop()
        text, self._held = self._held[:certain], self._held[certain:]
        self._told += len(text)
        return text

    def rest(self, choice: Choice) -> str:
        """What is left to tell once the choice is known."""
        return choice.text[self._told :]

    def _beginning_of_a_stop(self) -> int:
        """Letters at the end that a stop text begins with, the most of them."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(self._held)), longest, -1):
                if self._held.endswith(stop[:size]):
                    longest = size
                    break
        return longest
