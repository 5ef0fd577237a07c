"""OpenRLHF's trainers, told which tokens count, and reporting each step.

The training loop, the losses, the optimiser and the schedule are OpenRLHF's. `RowTrainer` only
reports. `PairTrainer` masks log-probabilities by token (OpenRLHF scores all that follows a prompt)
and weights pairs so that a step's loss is the mean over its pairs also where empty places fill up
its last micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias

import torch
from openrlhf.datasets import RewardDataset, SFTDataset
from openrlhf.models import DPOLoss
from openrlhf.trainer.dpo_trainer import DPOTrainer
from openrlhf.trainer.sft_trainer import SFTTrainer
from openrlhf.utils.deepspeed import DeepspeedStrategy

from agentc_backends.data.chat.rows import Side
from agentc_backends.trainers.openrlhf.session import Schedule

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


_REWARDS = tuple(f"rewards/{name}" for name in ("chosen", "rejected", "margins", "accuracies"))


class Reporter(Protocol):
    """Where a step's numbers go; see `reporting.py`."""

    def step(
        self, number: int, learning_rate: float, numbers: dict[str, float], *, updated: bool
    ) -> None: ...

    def last(self, number: int) -> bool: ...

    def must_stop(self, number: int, model: Any) -> bool: ...

    def save_due(self, number: int, model: Any) -> bool: ...
    def saved(self, number: int) -> None: ...

    def stop(self, number: int) -> NoReturn: ...


class OrderedStrategy(DeepspeedStrategy):  # type: ignore[misc]
    """DeepspeedStrategy that takes rows in the order of the data set, which has one already."""

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


class _Reporting:
    """Shared by both trainers: hands each step to the reporter, and saves as OpenRLHF does, except
    after the last step, when the finished model follows at once, and before the time limit.
    `finished` is called on every process when the training has ended."""

    reporter: Reporter
    finished: Callable[[LogProbs], None]
    strategy: Any
    scheduler: Any
    model: Any

    def begin(self, reporter: Reporter, finished: Callable[[LogProbs], None]) -> None:
        self.reporter, self.finished = reporter, finished
        self._next_rate = float(self.scheduler.get_last_lr()[0])

    def fit(self, *arguments: Any, **options: Any) -> None:
        super().fit(*arguments, **options)  # type: ignore[misc]
        self.model.eval()
        self.finished(self._log_probs)

    def _log_probs(self, side: Side) -> list[float]:
        ids = torch.tensor([side.ids], device=next(self.model.parameters()).device)
        with torch.no_grad():
            found = self.model(ids, attention_mask=torch.ones_like(ids), return_logprobs=True)
        values: list[float] = found[0].float().tolist()
        return values

    def report(self, args: Any, step: int, numbers: dict[str, float], states: Any) -> None:
        # OpenRLHF logs the rate after it has moved on.
        rate, self._next_rate = self._next_rate, float(self.scheduler.get_last_lr()[0])
        # DeepSpeed leaves an update out, and says nothing, where a gradient is not finite.
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


class RowTrainer(_Reporting, SFTTrainer):  # type: ignore[misc]
    """SFTTrainer that reports to `reporter`."""

    def __init__(
        self,
        *arguments: Any,
        reporter: Reporter,
        finished: Callable[[LogProbs], None],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.begin(reporter, finished)

    def save_logs_and_checkpoints(
        self, args: Any, global_step: int, step_bar: Any, logs_dict: Any = None, states: Any = None
    ) -> None:
        numbers = {"loss": logs_dict["loss_mean"], "grad_norm": logs_dict["grad_norm"]}
        self.report(args, global_step, numbers, states)


class PairTrainer(_Reporting, DPOTrainer):  # type: ignore[misc]
    """DPOTrainer on batches whose last element is a list of Scored."""

    def __init__(
        self,
        *arguments: Any,
        reporter: Reporter,
        finished: Callable[[LogProbs], None],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.begin(reporter, finished)
        stock: DPOLoss = self.loss_fn
        self.loss_fn: _WeightedLoss = _WeightedLoss(stock)
        self._nll: list[float] = []

    def concatenated_forward(self, model: Any, *batch: Any) -> Any:
        scored: Sequence[ScoredPair] = batch[-1]
        self.loss_fn.weights = [pair.weight for pair in scored]
        found = super().concatenated_forward(model, *batch)
        if model is self.model and self.nll_loss:
            self._nll.append(float(found[3]))
        return found

    def _get_batch_logps(
        self, per_token_logps: torch.Tensor, attention_mask: torch.Tensor, scored: list[ScoredPair]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums over the scored tokens of each row, and their means times the pair's weight. The
        list holds every pair twice: for the chosen sides, then for the rejected ones."""
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
    """A DPOLoss on the pairs that are not empty, times their share of the step's mean. With no
    empty pair in the step it is the same number, to the bit."""

    def __init__(self, loss: DPOLoss) -> None:
        super().__init__()
        self.loss = loss
        self.weights: list[float] = []
        self.totals = dict.fromkeys(_REWARDS, 0.0)

    def take(self, parts: int) -> dict[str, float]:
        """The rewards of a step of so many micro-batches: the same names on every process, also
        where a process had empty places alone, since processes add them up one by one."""
        taken, self.totals = self.totals, dict.fromkeys(_REWARDS, 0.0)
        return {name: total / parts for name, total in taken.items()}

    def forward(self, *log_probs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        held = [index for index, weight in enumerate(self.weights) if weight]
        if not held:
            nothing = log_probs[0] * 0
            return nothing.sum(), nothing.detach(), nothing.detach()
        if len(held) < len(self.weights):
            log_probs = tuple(values[held] for values in log_probs)
        loss, chosen, rejected = self.loss(*log_probs)
        share = self.weights[held[0]] * len(held) / len(self.weights)
        margins = chosen - rejected
        values = (chosen, rejected, margins, (margins > 0).float())
        for name, value in zip(_REWARDS, values, strict=True):
            self.totals[name] += float(value.mean()) * share
        return loss * share, chosen, rejected
