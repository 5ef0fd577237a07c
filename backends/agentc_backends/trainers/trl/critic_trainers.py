"""The trainers of critics, which score trajectories by log-ratios or by a head on a model.

`CriticTrainer` is PairTrainer with a weight for each token in its score (SWEET-RL, arXiv
2503.15478, equations 2 and 3). `ValueTrainer` is transformers' Trainer with a linear head (table 3
and figure 3a there; `data/models/value_head.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from datasets import Dataset
from torch.nn import functional
from transformers import Trainer

from agentc_backends.data.models.value_head import HEAD, pool_states
from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.trl.sharding import WHOLE, ModelLayout
from agentc_backends.trainers.trl.trainer_base import CRITIC_COUNTS, OrderedTrainer, StepMeans
from agentc_backends.trainers.trl.trainers import PairCollator, PairTrainer, count_held, row_by_row

_WEIGHTS = "score_weights"


class CriticTrainer(PairTrainer):
    """PairTrainer whose score of a side is the weighted sum of its tokens' log-ratios. Its rows
    also have `chosen_weights` and `rejected_weights`; `reference_rows` are what the reference
    reads, if that differs.

    loss = -log sigmoid(beta (score+ - score-)) + nll_weight NLL(chosen), the mean over the pairs of
    a step, and over the trained tokens of its chosen sides, or over their means (`nll`).
    """

    def __init__(
        self, *, nll_weight: float, reference_rows: Dataset | None = None, **options: Any
    ) -> None:
        self._nll_weight = nll_weight
        self._reference_rows = reference_rows
        super().__init__(**options)
        self._means = StepMeans(CRITIC_COUNTS)

    def _reference_values(self, dataset: Dataset, batch_size: int) -> list[list[float]]:
        return super()._reference_values(self._reference_rows or dataset, batch_size)

    def compute_ref_log_probs(self, model: Any, inputs: dict[str, torch.Tensor]) -> Any:
        """The reference's part of the scores: weighted sums over the tokens of each side."""
        batch = dict(inputs)
        weights = batch.pop(_WEIGHTS)[:, 1:]

        def weighted(**arguments: Any) -> SimpleNamespace:
            return SimpleNamespace(log_probs=model(**arguments).log_probs * weights)

        return super().compute_ref_log_probs(weighted, batch)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        self._signature_columns += ["chosen_weights", "rejected_weights"]

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """This micro-batch's share of the step's loss (times the number of processes, over which
        gradients are averaged)."""
        mask, weights = inputs["completion_mask"][:, 1:], inputs[_WEIGHTS][:, 1:]
        held = torch.stack(count_held(inputs["completion_mask"]))
        pairs, tokens = held if num_items_in_batch is None else num_items_in_batch
        size = mask.size(0) // 2
        optional = {n: inputs[n] for n in ("attention_mask", "position_ids") if n in inputs}
        log_probs = row_by_row(model, inputs)(
            input_ids=inputs["input_ids"],
            labels=inputs["input_ids"].masked_fill(inputs["completion_mask"] == 0, -100),
            use_cache=False,
            fused_lm_head=True,
            **optional,
        ).log_probs[:, -mask.size(1) :]
        scores = (log_probs * weights).sum(dim=1).chunk(2)
        chosen, rejected = (
            own - inputs[f"ref_{name}_logps"]
            for own, name in zip(scores, ("chosen", "rejected"), strict=True)
        )
        real = mask[:size].sum(dim=1) > 0
        losses = -functional.logsigmoid(self.beta * (chosen - rejected))
        loss: torch.Tensor = (losses * real).sum() / pairs
        if self._nll_weight:
            # Every pair has a trained token, unless all of the step's are empty.
            if self._nll.reduction == "row":
                share = self._nll.share(log_probs[:size], mask[:size], int(pairs), int(tokens))
                loss = loss + self._nll_weight * share
            else:
                likelihood = (log_probs[:size] * mask[:size]).sum() / tokens.clamp(min=1)
                loss = loss - self._nll_weight * likelihood
        self._record(chosen.detach(), rejected.detach(), [score.detach() for score in scores])
        self._add_means(self._places(inputs["completion_mask"]))
        return loss * self.accelerator.num_processes

    def _record(
        self, chosen: torch.Tensor, rejected: torch.Tensor, scores: list[torch.Tensor]
    ) -> None:
        """Metrics of a micro-batch under DPO's names: `rewards` are beta times log-ratios."""
        numbers = {
            "rewards/chosen": self.beta * chosen,
            "rewards/rejected": self.beta * rejected,
            "rewards/margins": self.beta * (chosen - rejected),
            "rewards/accuracies": (chosen > rejected).float(),
            "logps/chosen": scores[0],
            "logps/rejected": scores[1],
        }
        metrics = self._metrics["train" if self.model.training else "eval"]
        for name, values in numbers.items():
            metrics[name].append(self.accelerator.gather(values).mean().item())


@dataclass(frozen=True, slots=True)
class CriticCollator:
    """PairCollator's batch, with `score_weights` of its shape."""

    pad: int

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        batch = PairCollator(self.pad)(rows)
        weights = [row[f"{side}_weights"] for side in ("chosen", "rejected") for row in rows]
        batch[_WEIGHTS] = _padded(weights, 0.0, batch["input_ids"].size(1))
        return batch


class ValueTrainer(OrderedTrainer, Trainer):  # type: ignore[misc]
    """Trains a model with a head that scores each row, on items {ids, targets}.

    `bradley_terry`: an item is two rows, the better one first, and loses -log sigmoid(beta (s+ -
    s-)). `binary_cross_entropy`: an item is one row with a target from 0 to 1, whose logit is its
    score. The loss of a step is the mean over its items.
    """

    loss_is_scaled_for_ga = True

    def __init__(
        self,
        *,
        sampler: StepSampler,
        beta: float,
        objective: str,
        pooling: str,
        layout: ModelLayout = WHOLE,
        peft_config: None = None,
        **options: Any,
    ) -> None:
        assert peft_config is None, "the head is trained with all weights"
        self._order = sampler
        self._layout = layout
        self._beta, self._objective, self._pooling = beta, objective, pooling
        self._metrics: dict[str, dict[str, list[float]]] = {"train": {}}
        self._means = StepMeans({})
        super().__init__(**options)
        self._declare_sharding()

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: Any) -> torch.Tensor:
        """Items of the whole step that are not empty, over all processes: shape (1,)."""
        own = sum(int(batch["real"].sum()) for batch in batch_samples)
        return self._over_processes(torch.tensor([own], device=device))

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As CriticTrainer's: this micro-batch's share."""
        real = inputs["real"]
        items = real.sum() if num_items_in_batch is None else num_items_in_batch[0]
        scores = self._scores(model, inputs)
        if self._objective == "bradley_terry":
            better, worse = scores.view(-1, 2).unbind(dim=1)
            losses = -functional.logsigmoid(self._beta * (better - worse))
        else:
            losses = functional.binary_cross_entropy_with_logits(
                scores, inputs["targets"], reduction="none"
            )
        loss: torch.Tensor = (losses * real).sum() / items
        return loss * self.accelerator.num_processes

    def _scores(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """One score for each row, in float32 even where the model computes in bfloat16."""
        out = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            output_hidden_states=True,
            use_cache=False,
            logits_to_keep=1,
        )
        head = getattr(self.accelerator.unwrap_model(model), HEAD)
        with torch.autocast(out.hidden_states[-1].device.type, enabled=False):
            states = pool_states(out.hidden_states[-1], inputs["attention_mask"], self._pooling)
            scores: torch.Tensor = head(states).squeeze(1)
        return scores


@dataclass(frozen=True, slots=True)
class ValueCollator:
    """Pads rows on the right; those of an item are adjacent. `real` is false for items that only
    fill up a step."""

    pad: int

    def __call__(self, items: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        rows = [row for item in items for row in item["ids"]]
        longest = max(map(len, rows))
        return {
            "input_ids": _padded(rows, self.pad, longest),
            "attention_mask": _padded([[1] * len(row) for row in rows], 0, longest),
            "targets": torch.tensor([each for item in items for each in item["targets"]]),
            "real": torch.tensor([item["real"] for item in items]),
        }


def _padded(rows: Sequence[list[Any]], filling: float, length: int) -> torch.Tensor:
    return torch.tensor([row + [filling] * (length - len(row)) for row in rows])
