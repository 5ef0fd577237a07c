"""Forward passes over a single sequence. Their shapes depend on its tokens only, and so do the last
bits of their results; those of a shared pass do not. They settle close calls and give the
log-probabilities that are reported."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from agentc_backends.engine.model import Checkpoint, KeyValues, TokenSegment, forward
from agentc_backends.engine.prefix_cache import Tokens

CHUNK = 512
"""Tokens in one pass, whatever the limits of shared ones are."""
_PROMPTS = 4
"""Prompts that are kept: candidates of one turn come one after the other."""


class SingleSequencePasses:
    """Those of one checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._prompts: OrderedDict[bytes, KeyValues] = OrderedDict()

    def after(self, tokens: Sequence[int]) -> Tensor:
        """Logits [vocabulary] after the last of these tokens."""
        *_, logits = self._passes(self._store(len(tokens)), 0, tokens, last=True)
        return logits[0]

    def next_piece(self, store: KeyValues, text: Sequence[int], start: int) -> Tensor:
        """Logits [tokens, vocabulary] after each of the next tokens of a text that is computed up
        to `start`."""
        segment = TokenSegment(store, start, text[start : start + CHUNK])
        return forward(self._checkpoint.model, [segment], torch.arange(len(segment.tokens)))

    def of_reply(self, prompt: Tokens, reply: Sequence[int]) -> Iterator[Tensor]:
        """Logits [tokens, vocabulary] that the tokens of a reply were drawn from, in pieces."""
        start = len(prompt) - 1
        store = self._store(start + len(reply))
        store.copy_from(self._prompt_store(prompt[:-1]), start)
        yield from self._passes(store, start, [int(prompt[-1]), *reply[:-1]])

    def _prompt_store(self, prompt: Tokens) -> KeyValues:
        """Keys and values of a prompt, from passes that no reply takes part in."""
        name = prompt.tobytes()
        if name not in self._prompts:
            if len(self._prompts) == _PROMPTS:
                self._prompts.popitem(last=False)
            store = self._prompts[name] = self._store(len(prompt))
            for _ in self._passes(store, 0, prompt.tolist(), last=True):
                pass
        self._prompts.move_to_end(name)
        return self._prompts[name]

    def _passes(
        self, store: KeyValues, start: int, tokens: Sequence[int], *, last: bool = False
    ) -> Iterator[Tensor]:
        for place in range(0, len(tokens), CHUNK):
            piece = tokens[place : place + CHUNK]
            rows = torch.arange(len(piece) - 1 if last else 0, len(piece))
            segment = TokenSegment(store, start + place, piece)
            yield forward(self._checkpoint.model, [segment], rows)

    def _store(self, capacity: int) -> KeyValues:
        return KeyValues.allocate(self._checkpoint.geometry, capacity)
