"""OpenRLHF's data sets, with token rows and masks in training order, and its trainers, which report
each step.

The training loop, the losses, the optimiser and the learning rates are OpenRLHF's. `RowTrainer`
only reports. `PairTrainer` masks log-probabilities by token (OpenRLHF scores all that follows a
prompt) and weights pairs, so that a step's loss is the mean over its pairs even where empty places
fill up its last micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from openrlhf.datasets import RewardDataset, SFTDataset
from openrlhf.models import DPOLoss
from openrlhf.trainer.dpo_trainer import DPOTrainer
from openrlhf.trainer.sft_trainer import SFTTrainer
from openrlhf.utils.deepspeed import DeepspeedStrategy

from agentc_backends.data.chat.rows import Side
from agentc_backends.trainers.openrlhf.session import Schedule, StepReporter

Tokens: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"
"""Ids and attention mask of one row, each of shape (1, length)."""


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """What the loss of a pair needs besides tokens: for each side the mask of those that count, of
    shape (length,), and the pair's weight in a mean over all places of its step: 1.0, more if the
    step has empty places, 0.0 for an empty place."""

    chosen: torch.Tensor
    rejected: torch.Tensor
    weight: float


class TokenRows(SFTDataset):  # type: ignore[misc]
    """Item i: ids and attention mask of shape (1, length), and the loss mask (1, length) shifted
    left by one, as in OpenRLHF: whether the next token is trained."""

    def __init__(self, sides: Sequence[Side], schedule: Schedule, tokenizer: Any) -> None:
        self.sides = sides
        self.schedule = schedule
        self.tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self.schedule.places)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        row = self.schedule.places[place]
        side = _empty_side(self.tokenizer) if row is None else self.sides[row]
        ids, attention = _tokens(side)
        return ids, attention, torch.tensor([[*side.trained[1:], False]], dtype=torch.float32)


class TokenPairs(RewardDataset):  # type: ignore[misc]
    """Item i: ids and attention mask of the chosen and of the rejected side, and a ScoredPair where
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
            chosen = rejected = _empty_side(self.tokenizer)
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


def _empty_side(tokenizer: Any) -> Side:
    # Two tokens: OpenRLHF squeezes a batch of rows of one token into a vector.
    return Side([tokenizer.pad_token_id] * 2, [False] * 2)


_REWARDS = tuple(f"rewards/{name}" for name in ("chosen", "rejected", "margins", "accuracies"))


class OrderedStrategy(DeepspeedStrategy):  # type: ignore[misc]
    """DeepspeedStrategy that takes rows in the order of the data set."""

    def setup_dataloader(
        self,
        dataset: Any,
        batch_size: int,
        pin_memory: bool,
        shuffle: bool,
        *rest: Any,
        **more: Any,
    ) -> Any:
        pin = pin_memory and torch.cuda.is_available()
        return super().setup_dataloader(dataset, batch_size, pin, False, *rest, **more)


LogProbs: TypeAlias = "Callable[[Side], list[float]]"
"""The model's log-probabilities of a row's tokens after the first."""


class _ReportingTrainer:
    """Shared by both trainers: passes each step to the reporter, which decides when to save and
    stop. `finished` is called on every process when the training has ended."""

    reporter: StepReporter
    finished: Callable[[LogProbs], None]
    strategy: Any
    scheduler: Any
    model: Any

    def _set_reporter(self, reporter: StepReporter, finished: Callable[[LogProbs], None]) -> None:
        self.reporter, self.finished = reporter, finished
        self._next_rate = float(self.scheduler.get_last_lr()[0])

    def fit(self, *arguments: Any, **options: Any) -> None:
        super().fit(*arguments, **options)  # type: ignore[misc]
        self.model.eval()
        self.finished(self._log_probs)

    def _log_probs(self, side: Side) -> list[float]:
        ids = torch.tensor([side.ids], device=next(self.model.parameters()).device)
        with torch.no_grad():
            output = self.model(ids, attention_mask=torch.ones_like(ids), return_logprobs=True)
        values: list[float] = output[0].float().tolist()
        return values

    def report(self, args: Any, step: int, numbers: dict[str, float], states: Any) -> None:
        # OpenRLHF logs the next step's rate.
        rate, self._next_rate = self._next_rate, float(self.scheduler.get_last_lr()[0])
        # DeepSpeed silently skips an update whose gradient is not finite.
        updated = self.model.model.skipped_steps == 0
        self.reporter.step(step, rate, self.strategy.all_reduce(numbers), updated=updated)
        stops = self.reporter.must_stop(step, self.model)
        if self.reporter.save_due(step, self.model) or stops:
            self.strategy.save_ckpt(
                self.model.model,
                args.ckpt.path,
                f"global_step{step}",
                args.ckpt.max_num,
                args.ckpt.max_mem,
                states,
            )
            self.reporter.saved(step)
        if stops:
            self.reporter.stop(step)


class RowTrainer(_ReportingTrainer, SFTTrainer):  # type: ignore[misc]
    """SFTTrainer that reports to `reporter`."""

    def __init__(
        self,
        *arguments: Any,
        reporter: StepReporter,
        finished: Callable[[LogProbs], None],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._set_reporter(reporter, finished)

    def save_logs_and_checkpoints(
        self, args: Any, global_step: int, step_bar: Any, logs_dict: Any = None, states: Any = None
    ) -> None:
        numbers = {"loss": logs_dict["loss_mean"], "grad_norm": logs_dict["grad_norm"]}
        self.report(args, global_step, numbers, states)


class PairTrainer(_ReportingTrainer, DPOTrainer):  # type: ignore[misc]
    """DPOTrainer on batches whose last element is a list of ScoredPair."""

    def __init__(
        self,
        *arguments: Any,
        reporter: StepReporter,
        finished: Callable[[LogProbs], None],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._set_reporter(reporter, finished)
        stock: DPOLoss = self.loss_fn
        self.loss_fn: _WeightedLoss = _WeightedLoss(stock)
        self._nll: list[float] = []

    def concatenated_forward(self, model: Any, *batch: Any) -> Any:
        scored: Sequence[ScoredPair] = batch[-1]
        self.loss_fn.weights = [pair.weight for pair in scored]
        outputs = super().concatenated_forward(model, *batch)
        if model is self.model and self.nll_loss:
            self._nll.append(float(outputs[3]))
        return outputs

    def _get_batch_logps(
        self, per_token_logps: torch.Tensor, attention_mask: torch.Tensor, scored: list[ScoredPair]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums over the scored tokens of each row, and their means times the pair's weight.
        `scored` has every pair twice: for the chosen sides, then for the rejected ones."""
        half = len(scored) // 2
        masks = [pair.chosen for pair in scored[:half]] + [pair.rejected for pair in scored[half:]]
        counted = torch.zeros_like(per_token_logps)
        for row, mask in enumerate(masks):
            counted[row, : len(mask) - 1] = mask[1:]
        weights = per_token_logps.new_tensor([pair.weight for pair in scored])
        sums = (per_token_logps * counted).sum(-1)
        return sums, sums * weights / counted.sum(-1).clamp(min=1)

    def save_logs_and_checkpoints(
        self, args: Any, global_step: int, step_bar: Any, logs_dict: Any = None, states: Any = None
    ) -> None:
        parts = self.strategy.accumulated_gradient
        numbers = self.loss_fn.take(parts)
        numbers["loss"] = logs_dict["loss_mean"]
        numbers["grad_norm"] = logs_dict["grad_norm"]
        if self._nll:
            numbers["nll_loss"] = sum(self._nll) / parts
            numbers["loss"] += args.model.nll_loss_coef * numbers["nll_loss"]
            self._nll.clear()
        self.report(args, global_step, numbers, states)


class _WeightedLoss(torch.nn.Module):  # type: ignore[misc]
    """A DPOLoss on the pairs that are not empty, times their share of the step's mean. Without
    empty pairs in the step it is bitwise the same number."""

    def __init__(self, loss: DPOLoss) -> None:
        super().__init__()
        self.loss = loss
        self.weights: list[float] = []
        self.totals = dict.fromkeys(_REWARDS, 0.0)

    def take(self, parts: int) -> dict[str, float]:
        """The rewards of a step of `parts` micro-batches: the same names on every process, even one
        with empty places only, since they are reduced over processes one by one."""
        totals, self.totals = self.totals, dict.fromkeys(_REWARDS, 0.0)
        return {name: total / parts for name, total in totals.items()}

    def forward(self, *log_probs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        held = [index for index, weight in enumerate(self.weights) if weight]
        if not held:
            zeros = log_probs[0] * 0
            return zeros.sum(), zeros.detach(), zeros.detach()
        if len(held) < len(self.weights):
            log_probs = tuple(values[held] for values in log_probs)
        loss, chosen, rejected = self.loss(*log_probs)
        share = self.weights[held[0]] * len(held) / len(self.weights)
        margins = chosen - rejected
        values = (chosen, rejected, margins, (margins > 0).float())
        for name, value in zip(_REWARDS, values, strict=True):
            self.totals[name] += float(value.mean()) * share
        return loss * share, chosen, rejected
