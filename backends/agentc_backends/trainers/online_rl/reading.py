"""Readers: what a critic sees of a text, one vector each, from an encoder or from a causal body.

A causal body reads a whole episode at once: each state is a prefix of it, and what stands at the
prefix's last token knows nothing of what follows. An encoder that sees both ways has to read each
prefix anew. Neighbours: `critic.py`,
`encoder_texts.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

Pool: TypeAlias = Literal["pooler", "first", "mean", "last"]
T = TypeVar("T")
_STRETCH, _SLACK, _TOKENS = 1.25, 4, 16384
Translate: TypeAlias = Callable[[tuple[int, ...]], tuple[int, ...]]
"""A text in a policy's tokens, in those of an encoder."""


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids. Prefixes of one, or of equal ones, are read together."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextPrefix:
    """The first `length` tokens of a text, at least one."""

    text: Text
    length: int

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens."""
        return self.text.ids[: self.length]


def whole(text: Text) -> TextPrefix:
    """All of a text."""
    return TextPrefix(text, len(text.ids))


class Reader(nn.Module, ABC):  # type: ignore[misc]
    """`forward` takes prefixes and gives their features [B, `width`], in their order."""

    width: int

    @abstractmethod
    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor: ...


class CausalReader(Reader):
    """Reads the last token of each prefix from a decoder without its head (`body`, of the kind of
    transformers: `input_ids`, `attention_mask`, `last_hidden_state`)."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body, self.width = body, width

    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor:
        longest: dict[Text, int] = {}
        for one in prefixes:
            longest[one.text] = max(longest.get(one.text, 0), one.length)
        wanted: dict[Text, list[int]] = {text: [] for text in longest}
        for number, one in enumerate(prefixes):
            wanted[one.text].append(number)
        texts = sorted(longest, key=lambda text: longest[text])  # stable: of equal ones the first
        found, order = [], []
        for part in _of_like_length(texts, [longest[text] for text in texts]):
            rows = [text.ids[: longest[text]] for text in part]
            states = _hidden(self.body, *_padded(rows, self._device()))
            numbers = [(row, number) for row, text in enumerate(part) for number in wanted[text]]
            row = torch.tensor([row for row, _ in numbers], device=states.device)
            at = [prefixes[number].length - 1 for _, number in numbers]
            found.append(states[row, torch.tensor(at, device=states.device)])
            order += [number for _, number in numbers]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(found)[back.to(found[0].device)]

    def _device(self) -> torch.device:
        return next(self.body.parameters()).device


class EncoderReader(Reader):
    """Reads each distinct prefix by an encoder that sees both ways, in its own tokens, which
    `translate` makes of the policy's."""

    def __init__(self, encoder: nn.Module, width: int, pool: Pool, translate: Translate) -> None:
        super().__init__()
        self.encoder, self.width, self.pool = encoder, width, pool
        self._translate = translate

    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor:
        kept = [self._translate(one.ids) for one in prefixes]
        distinct = sorted(set(kept), key=lambda ids: (len(ids), ids))
        device = next(self.encoder.parameters()).device
        found = []
        for part in _of_like_length(distinct, [*map(len, distinct)]):
            ids, mask = _padded(part, device)
            output = self.encoder(input_ids=ids, attention_mask=mask)
            found.append(self._pooled(output, mask))
        numbers = {ids: number for number, ids in enumerate(distinct)}
        return torch.cat(found)[torch.tensor([numbers[ids] for ids in kept], device=device)]

    def _pooled(self, output: Any, mask: Tensor) -> Tensor:
        states: Tensor = output.last_hidden_state
        match self.pool:
            case "pooler":
                pooled: Tensor = output.pooler_output
                return pooled
            case "first":
                return states[:, 0]
            case "last":
                rows = torch.arange(len(states), device=states.device)
                return states[rows, mask.sum(dim=1) - 1]
            case "mean":
                weights = mask.unsqueeze(2).to(states.dtype)
                return (states * weights).sum(dim=1) / weights.sum(dim=1)


def _hidden(body: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    # Right padding under a causal mask reaches no token before it: positions are those of the
    # text itself, whatever stands beside it in the batch.
    found: Tensor = body(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    return found


def _of_like_length(texts: Sequence[T], lengths: Sequence[int]) -> Iterator[Sequence[T]]:
    """Texts, shortest first, in parts that go through a model together: none is padded to more than
    `_STRETCH` times its length (and `_SLACK` tokens), for padding costs what text does, and each
    part holds at most `_TOKENS`, so that memory does not grow with the batch."""
    start = 0
    for end in range(1, len(texts) + 1):
        if end < len(texts):
            fits = (end + 1 - start) * lengths[end] <= _TOKENS
            if fits and lengths[end] <= _STRETCH * lengths[start] + _SLACK:
                continue
        yield texts[start:end]
        start = end


def _padded(rows: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask [B, T]. Padding is by token 0: no weight looks at it, for the mask hides it."""
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids.to(device), mask.to(device)
