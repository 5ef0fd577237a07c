"""OpenRLHF's data sets, holding token rows and masks that are already made, in the order in which
they are trained. What they give for a batch is what OpenRLHF's trainers expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from openrlhf.datasets import RewardDataset, SFTDataset

from agentc_backends.data.chat.rows import Side
from agentc_backends.trainers.openrlhf.schedule import Schedule

Tokens: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"
"""Ids and attention mask of one row, each of shape (1, length)."""


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """What a pair's loss needs besides tokens: which of them count, by side, as masks of shape
    (length,), and the pair's weight in a mean over all places of its step: 1.0, more where empty
    places stand beside it, 0.0 for an empty place."""

    chosen: torch.Tensor
    rejected: torch.Tensor
    weight: float


class TokenRows(SFTDataset):  # type: ignore[misc]
    """Item i: ids and attention mask of shape (1, length), and the loss mask (1, length) shifted
    left by one, as OpenRLHF has it: it says whether the next token is trained."""

    def __init__(self, sides: Sequence[Side], schedule: Schedule, tokenizer: Any) -> None:
        self.sides = sides
        self.schedule = schedule
        self.tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self.schedule.places)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        row = self.schedule.places[place]
        side = _nothing(self.tokenizer) if row is None else self.sides[row]
        ids, attention = _tokens(side)
        return ids, attention, torch.tensor([[*side.trained[1:], False]], dtype=torch.float32)


class TokenPairs(RewardDataset):  # type: ignore[misc]
    """Item i: ids and attention mask of the chosen and of the rejected side, and a Scored where
    OpenRLHF has the length of the prompt."""

    is_dpo = True

    def __init__(
        self, pairs: Sequence[tuple[Side, Side]], schedule: Schedule, tokenizer: Any
    ) -> None:
        self.pairs = pairs
        self.schedule = schedule
        self.tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self.schedule.places)

    def __getitem__(self, place: int) -> tuple[torch.Tensor | ScoredPair, ...]:
        row = self.schedule.places[place]
        if row is None:
            chosen = rejected = _nothing(self.tokenizer)
            weight = 0.0
        else:
            chosen, rejected = self.pairs[row]
            held = self.schedule.held[self.schedule.step_of(place)]
            weight = self.schedule.global_batch / held
        scored = ScoredPair(torch.tensor(chosen.trained), torch.tensor(rejected.trained), weight)
        return (*_tokens(chosen), *_tokens(rejected), scored)


def _tokens(side: Side) -> Tokens:
    ids = torch.tensor([side.ids])
    return ids, torch.ones_like(ids)


def _nothing(tokenizer: Any) -> Side:
    # Two tokens: OpenRLHF squeezes a batch of rows of one token into a vector.
    return Side([tokenizer.pad_token_id] * 2, [False] * 2)
