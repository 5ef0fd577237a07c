"""The log-likelihood term of DPO in the forms that TRL's `sft` term has not: over the whole chosen
row, prompt included, and as a mean of row means, as the fork of OpenRLHF that SWEET-RL trained with
has them (`nll_on`, `nll_reduction`). Used by `trainers.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from agentc_backends.data.chat.rows import IGNORED


@dataclass(frozen=True, slots=True)
class NllRules:
    """Whose tokens count, and what is averaged: those of a step alike, or its rows alike."""

    on: Literal["chosen", "whole"] = "chosen"
    reduction: Literal["token", "row"] = "token"

    @property
    def stock(self) -> bool:
        """Whether TRL's own term says it."""
        return self == NllRules()

    def counted(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The tokens of the chosen sides that count, from the second of each row on, which is the
        first that is predicted: shape (pairs, length - 1)."""
        mask = batch["attention_mask" if self.on == "whole" else "completion_mask"]
        return mask[:, 1:].chunk(2)[0].bool()

    def share(
        self, log_probs: torch.Tensor, counted: torch.Tensor, pairs: int, tokens: int
    ) -> torch.Tensor:
        """This micro-batch's share of the term of a step with so many pairs and counted tokens:
        minus the mean of `log_probs` (pairs, length - 1) over tokens, or over rows."""
        sums = (log_probs * counted).sum(dim=1)
        if self.reduction == "token":
            return -sums.sum() / max(tokens, 1)
        return -(sums / counted.sum(dim=1).clamp(min=1)).sum() / pairs


class Overheard:
    """A model, called once by TRL, whose log-probabilities of the chosen side are kept: (pairs,
    length - 1). Where the prompt counts too, TRL is shown none of its tokens."""

    def __init__(self, model: Any, rules: NllRules, batch: Mapping[str, torch.Tensor]) -> None:
        self._model = model
        self._rules = rules
        self._batch = batch
        self.chosen = torch.empty(0)

    def __call__(self, **inputs: Any) -> Any:
        scored = self._batch["completion_mask"]
        whole = self._rules.on == "whole"
        if whole:
            labels = inputs["labels"].clone()
            half = labels.size(0) // 2
            present = self._batch["attention_mask"][:half] == 1
            labels[:half] = inputs["input_ids"][:half].masked_fill(~present, IGNORED)
            inputs["labels"] = labels
        found = self._model(**inputs)
        length = scored.size(1) - 1
        self.chosen = found.log_probs[:, -length:].chunk(2)[0]
        if whole:
            found = copy.copy(found)
            found.log_probs = found.log_probs[:, -length:] * scored[:, 1:]
        return found
