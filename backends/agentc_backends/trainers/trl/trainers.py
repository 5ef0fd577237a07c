"""TRL's SFTTrainer and DPOTrainer on rows that agentc has tokenised, masked and ordered.

`PairTrainer` is DPOTrainer with a mask for each token (TRL scores every token after the prompt),
with losses that do not depend on how a step is divided into micro-batches and processes, and with
two more forms of the likelihood term (`NllRules`).
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from datasets import Dataset
from trl import DPOTrainer, SFTTrainer
from trl.trainer import dpo_trainer

from agentc.program.job import write_json
from agentc_backends.data.chat.rows import IGNORED
from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.trl.sharding import WHOLE, ModelLayout, release_gathered
from agentc_backends.trainers.trl.trainer_base import (
    DPO_COUNTS,
    SFT_COUNTS,
    OrderedTrainer,
    StepMeans,
)

_POSITIONS = ("chosen_positions", "rejected_positions")
_ZERO_SCORE = {"sigmoid": math.log(2), "robust": math.log(2), "sigmoid_norm": math.log(2)}
"""Losses of a pair whose sides have equal scores."""


@dataclass(frozen=True, slots=True)
class NllRules:
    """The log-likelihood term of DPO: over the chosen reply or the whole chosen row with its prompt
    (`on`), as a mean over the tokens of a step or over its rows' means (`reduction`). TRL's `sft`
    term is the default; the fork of OpenRLHF that SWEET-RL trained with has the others."""

    on: Literal["chosen", "whole"] = "chosen"
    reduction: Literal["token", "row"] = "token"

    @property
    def stock(self) -> bool:
        """Whether it is TRL's own term."""
        return self == NllRules()

    def counted(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The tokens of the chosen sides that count, without the first of each row, which is not
        predicted: shape (pairs, length - 1)."""
        mask = batch["attention_mask" if self.on == "whole" else "completion_mask"]
        return mask[:, 1:].chunk(2)[0].bool()

    def share(
        self, log_probs: torch.Tensor, counted: torch.Tensor, pairs: int, tokens: int
    ) -> torch.Tensor:
        """This micro-batch's share of the term of a step with `pairs` pairs and `tokens` counted
        tokens: minus the mean of `log_probs` (pairs, length - 1) over tokens or rows."""
        sums = (log_probs * counted).sum(dim=1)
        if self.reduction == "token":
            return -sums.sum() / max(tokens, 1)
        return -(sums / counted.sum(dim=1).clamp(min=1)).sum() / pairs


class ChosenLogProbs:
    """A model for one call by TRL that keeps the log-probabilities of the chosen sides in `chosen`:
    (pairs, length - 1). Where the prompt counts too, TRL receives none of its tokens."""

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
        output = self._model(**inputs)
        length = scored.size(1) - 1
        self.chosen = output.log_probs[:, -length:].chunk(2)[0]
        if whole:
            output = copy.copy(output)
            output.log_probs = output.log_probs[:, -length:] * scored[:, 1:]
        return output


class RowTrainer(OrderedTrainer, SFTTrainer):  # type: ignore[misc]
    """SFTTrainer on rows in a given order."""

    def __init__(
        self, *, sampler: StepSampler, layout: ModelLayout = WHOLE, **options: Any
    ) -> None:
        self._order = sampler
        self._layout = layout
        self._means = StepMeans(SFT_COUNTS)
        super().__init__(**options)
        self._declare_sharding()

    def compute_loss(self, model: Any, inputs: dict[str, torch.Tensor], **options: Any) -> Any:
        """TRL's, with metrics weighted by the tokens that they are means over."""
        trained = (inputs["labels"][:, 1:] != IGNORED).sum()
        loss = super().compute_loss(model, inputs, **options)
        tokens = int(self._over_processes(trained.reshape(1))[0])
        self._add_means({"tokens": (tokens, tokens)})
        return loss


class PairTrainer(OrderedTrainer, DPOTrainer):  # type: ignore[misc]
    """DPOTrainer on rows {chosen_ids, chosen_mask, rejected_ids, rejected_mask, ref_*_logps}.

    The loss of a step is the mean over its pairs; the `sft` term is the mean over the trained
    tokens of its chosen sides, or that of `nll`. TRL averages over each micro-batch instead, so
    that its result depends on the micro-batch size; here a micro-batch's share is weighted by what
    it holds.
    """

    loss_is_scaled_for_ga = True

    def __init__(
        self,
        *,
        sampler: StepSampler,
        layout: ModelLayout = WHOLE,
        reference_cache: Path,
        nll: NllRules | None = None,
        **options: Any,
    ) -> None:
        self._order = sampler
        self._layout = layout
        self._means = StepMeans(DPO_COUNTS)
        self._reference_cache = reference_cache
        self._nll = nll or NllRules()
        # The digest names TRL's own cache of log-probabilities, which is not used; it takes minutes
        # for a large model and does not exist for a sharded one.
        dpo_trainer.hash_module = lambda module: ""
        super().__init__(**options)
        self._declare_sharding()
        self._term_weights: list[float] = list(self.args.loss_weights or [1.0])

    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        return dataset

    def _precompute_ref_logps(self, dataset: Dataset, name: str, batch_size: int) -> Dataset:
        """The data set with the reference's log-probabilities, computed once in batches of similar
        length, or read from the file of an earlier attempt."""
        if self._reference_cache.exists():
            values = json.loads(self._reference_cache.read_text(encoding="utf-8"))
        else:
            values = self._reference_values(dataset, batch_size)
            if self.accelerator.is_main_process:
                write_json(self._reference_cache, values)
        # The reference is no longer needed: free its memory.
        self.ref_model = None
        if self._layout.sharded:
            release_gathered(self.model)
        # Empty pairs are not in the file: their number changes with the number of processes.
        values = values + [[0.0, 0.0]] * (len(dataset) - len(values))
        for index, column in enumerate(("ref_chosen_logps", "ref_rejected_logps")):
            dataset = dataset.add_column(column, [pair[index] for pair in values])
        return dataset

    def _reference_values(self, dataset: Dataset, batch_size: int) -> list[list[float]]:
        """Summed log-probabilities [chosen, rejected] of each row that is not empty; each process
        computes its share."""
        rows = dataset.to_list()[: len(self._order.lengths)]
        longest = [max(len(row["chosen_ids"]), len(row["rejected_ids"])) for row in rows]
        by_length = sorted(range(len(rows)), key=lambda row: (-longest[row], row))
        model = self.ref_model or self.model
        values: list[tuple[int, list[float]]] = []
        starts = range(0, len(rows), batch_size)
        turns = math.ceil(len(starts) / self.args.world_size)
        for turn in range(turns):
            own = turn * self.args.world_size + self.args.process_index
            # All processes gather a sharded model together: one that has no batch left repeats the
            # first.
            start = starts[own] if own < len(starts) else 0
            indices = by_length[start : start + batch_size]
            batch = self._prepare_inputs(self.data_collator([rows[i] for i in indices]))
            chosen, rejected = self.compute_ref_log_probs(row_by_row(model, batch), batch)
            pairs = torch.stack((chosen, rejected), dim=1).float().tolist()
            if own < len(starts):
                values += zip(indices, pairs, strict=True)
        if self.args.world_size > 1:
            shares: list[Any] = [None] * self.args.world_size
            torch.distributed.all_gather_object(shares, values)
            values = [item for share in shares for item in share]
        return [pair for _, pair in sorted(values)]

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [
            "chosen_ids",
            "chosen_mask",
            "rejected_ids",
            "rejected_mask",
            *_POSITIONS,
            "ref_chosen_logps",
            "ref_rejected_logps",
        ]

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: Any) -> torch.Tensor:
        """Pairs of the whole step and tokens of its likelihood term, over all processes: shape
        (2,)."""
        counts = sum(
            (
                torch.stack(
                    (count_held(batch["completion_mask"])[0], self._nll.counted(batch).sum())
                )
                for batch in batch_samples
            ),
            start=torch.zeros(2, dtype=torch.long),
        ).to(device)
        return self._over_processes(counts)

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """This micro-batch's share of the step's loss (times the number of processes, over which
        gradients are averaged)."""
        mask = inputs["completion_mask"]
        counted = self._nll.counted(inputs)
        held_pairs, held_tokens = int(count_held(mask)[0]), int(counted.sum())
        pairs, tokens = (
            (held_pairs, held_tokens)
            if num_items_in_batch is None
            else (int(count) for count in num_items_in_batch)
        )
        size = mask.size(0) // 2
        terms, weights, surplus, own = [], [], 0.0, 0.0
        for term, weight in zip(self._terms(), self._term_weights, strict=True):
            if term == "sft":
                if held_tokens == 0:
                    continue
                if not self._nll.stock:
                    own = weight
                    continue
                weights.append(weight * held_tokens / tokens)
            else:
                weights.append(weight * size / pairs)
                # Empty pairs add a constant without gradient; it is subtracted from the loss.
                surplus += weight * (size - held_pairs) / pairs * self._empty_loss(term)
            terms.append(term)
        self.loss_types, self.loss_weights = terms, weights
        rows_apart = row_by_row(model, inputs)
        recorder = ChosenLogProbs(rows_apart, self._nll, inputs) if own else None
        loss: torch.Tensor = super().compute_loss(recorder or rows_apart, inputs)
        if recorder is not None:
            loss = loss + own * self._nll.share(recorder.chosen, counted, pairs, tokens)
        self._add_means(self._places(mask))
        return (loss - surplus) * self.accelerator.num_processes

    def _places(self, mask: torch.Tensor) -> dict[str, tuple[int, int]]:
        """What TRL's metrics of a micro-batch are means over, and how much of it counts."""
        pairs, chosen = count_held(mask)
        counts = torch.stack((pairs, chosen, mask[:, 1:].sum()))
        held, scored, tokens = self._over_processes(counts).tolist()
        places = mask.size(0) // 2 * self.accelerator.num_processes
        return {
            "pairs": (places, held),
            "tokens": (tokens, tokens),
            "chosen": (scored, scored),
            "rejected": (tokens - scored, tokens - scored),
        }

    def _terms(self) -> Sequence[str]:
        terms: list[str] = self.args.loss_type
        return terms

    def _empty_loss(self, term: str) -> float:
        if term == "hinge":
            return 1.0
        if term == "ipo":
            return float((1 / (2 * self.beta)) ** 2)
        return _ZERO_SCORE[term]


@dataclass(frozen=True, slots=True)
class PairCollator:
    """Pads pairs on the right into one batch: the chosen sides first, then the rejected ones.

    Returns input_ids, attention_mask and completion_mask of shape (2 * pairs, longest side), and
    ref_*_logps of shape (pairs,) when the rows have them. Where a side is several rows of tokens
    (`chosen_positions`), position_ids of the same shape say where each begins.
    """

    pad: int

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        ids = [row["chosen_ids"] for row in rows] + [row["rejected_ids"] for row in rows]
        masks = [row["chosen_mask"] for row in rows] + [row["rejected_mask"] for row in rows]
        length = max(len(side) for side in ids)
        batch = {
            "input_ids": torch.tensor([s + [self.pad] * (length - len(s)) for s in ids]),
            "attention_mask": torch.tensor([[1] * len(s) + [0] * (length - len(s)) for s in ids]),
            "completion_mask": torch.tensor(
                [list(map(int, m)) + [0] * (length - len(m)) for m in masks]
            ),
        }
        if _POSITIONS[0] in rows[0]:
            positions = [row[name] for name in _POSITIONS for row in rows]
            # Positions of the padding continue, so that it starts no row after a short side.
            batch["position_ids"] = torch.tensor(
                [p + [p[-1] + 1 + n for n in range(length - len(p))] for p in positions]
            )
        for name in ("ref_chosen_logps", "ref_rejected_logps"):
            if name in rows[0]:
                batch[name] = torch.tensor([row[name] for row in rows])
        return batch


def row_by_row(model: Any, inputs: Mapping[str, torch.Tensor]) -> Any:
    """The model; where `inputs` have several rows within a side, one in which no row attends to
    another. transformers takes a position that restarts for the beginning of a row if there is no
    attention mask. Padding needs none: it is on the right, and not trained."""
    if "position_ids" not in inputs:
        return model

    def apart(**arguments: Any) -> Any:
        return model(**{**arguments, "attention_mask": None})

    return apart


def count_held(mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Non-empty pairs and trained chosen tokens of a completion mask (2 * pairs, length)."""
    scored = mask[:, 1:].sum(dim=1)
    chosen, _ = scored.chunk(2)
    return (chosen > 0).sum(), chosen.sum()
