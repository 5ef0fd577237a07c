"""What all of TRL's trainers share here: a given row order, means over what a step holds, sharded
models, and the callbacks that report steps, mark checkpoints as complete and stop in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import TrainerCallback

from agentc.program.job import Job
from agentc_backends.trainers.common.checkpoints import Deadline, mark_complete
from agentc_backends.trainers.common.checks import require_finite
from agentc_backends.trainers.common.processes import first_process, wait_for_all
from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.common.step_log import StepLog
from agentc_backends.trainers.trl.session import CHECKPOINTS
from agentc_backends.trainers.trl.sharding import (
    ModelLayout,
    has_shards,
    load_shards,
    load_whole,
    save_shards,
)

SFT_COUNTS = {"entropy": "tokens", "mean_token_accuracy": "tokens"}
"""Metrics of TRL's SFTTrainer for a micro-batch: what each is a mean over."""

DPO_COUNTS = {
    "entropy": "tokens",
    "mean_token_accuracy": "chosen",
    "logits/chosen": "chosen",
    "logits/rejected": "rejected",
    **{f"rewards/{name}": "pairs" for name in ("chosen", "rejected", "margins", "accuracies")},
    **{f"logps/{name}": "pairs" for name in ("chosen", "rejected")},
}
"""The same of DPOTrainer. TRL's other metrics are left out: they would count padding."""

CRITIC_COUNTS = {name: of for name, of in DPO_COUNTS.items() if of == "pairs"}
"""The same of CriticTrainer (`critic_trainers.py`)."""

_SCHEDULER = "scheduler.pt"
"""transformers' name for the file."""


class StepMeans:
    """Metrics of a logged line as means over its steps, and of a step as means over its own pairs
    or trained tokens.

    TRL instead takes the mean over the micro-batches since the line before, all weighted equally:
    the empty rows that fill up an epoch's last micro-batch, and few tokens as much as many.
    """

    def __init__(self, counts: Mapping[str, str]) -> None:
        self._counts = counts
        # By step and name: the sum, and the number of things in it.
        self._sums: dict[int, dict[str, tuple[float, float]]] = {}

    def add(
        self, step: int, means: Mapping[str, Sequence[float]], held: Mapping[str, tuple[int, int]]
    ) -> None:
        """Add a micro-batch's means, the last of each list, over all processes.

        `held` is, for each kind of thing, the number that TRL divided by and the number that
        counts. They differ for pairs, where an empty one adds nothing to a sum.
        """
        sums = self._sums.setdefault(step, {})
        for name, of in self._counts.items():
            total, count = sums.get(name, (0.0, 0.0))
            divided_by, counted = held[of]
            sums[name] = total + means[name][-1] * divided_by, count + counted

    def take(self) -> dict[str, float]:
        """The means over the steps since the last call."""
        steps = [
            {name: total / count for name, (total, count) in sums.items() if count}
            for sums in self._sums.values()
        ]
        self._sums = {}
        names = [name for name in self._counts if any(name in step for step in steps)]
        return {name: _mean([step[name] for step in steps if name in step]) for name in names}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class ShardedTrainer:
    """A Trainer whose model may be sharded; without sharding all is transformers' own."""

    _layout: ModelLayout
    args: Any
    model: Any
    optimizer: Any
    lr_scheduler: Any

    def _declare_sharding(self) -> None:
        """To be called at the end of `__init__`: the model shards itself, without a wrapper."""
        if self._layout.sharded:
            # If it were set from the start, the trainer would refuse to save what can be resumed.
            self.is_distributed_loading_by_transformers = True

    def _move_model_to_device(self, model: Any, device: Any) -> None:
        """Shards are on their devices already."""
        if not self._layout.sharded:
            super()._move_model_to_device(model, device)  # type: ignore[misc]

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """In a checkpoint of a sharded training the weights are among its shards."""
        if not self._layout.sharded:
            super().save_model(output_dir, _internal_call)  # type: ignore[misc]

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if not self._layout.sharded:
            super()._save_optimizer_and_scheduler(output_dir)  # type: ignore[misc]
            return
        save_shards(Path(output_dir), self.model, self._bare_optimizer())
        if self.args.should_save:
            torch.save(self.lr_scheduler.state_dict(), Path(output_dir) / _SCHEDULER)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if self._loaded_by_transformers(resume_from_checkpoint):
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """From shards, or into a sharded model, this loads the weights too."""
        if checkpoint is None or self._loaded_by_transformers(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
            return
        load = load_shards if has_shards(Path(checkpoint)) else load_whole
        load(Path(checkpoint), self.model, self._bare_optimizer())
        schedule = torch.load(Path(checkpoint) / _SCHEDULER, weights_only=True)
        self.lr_scheduler.load_state_dict(schedule)

    def _loaded_by_transformers(self, checkpoint: str) -> bool:
        """Whether transformers can resume from this checkpoint. Adapters are never sharded."""
        sharded = self._layout.sharded and not isinstance(self.model, PeftModel)
        return not sharded and not has_shards(Path(checkpoint))

    def _bare_optimizer(self) -> Any:
        return self.optimizer.optimizer  # accelerate wraps it


class OrderedTrainer(ShardedTrainer):
    """A given row order, metrics that count no padding (`Reporter` counts the tokens), and no model
    cards."""

    _order: StepSampler
    _means: StepMeans
    state: Any
    accelerator: Any
    _metrics: Any

    def _get_train_sampler(self, train_dataset: Any = None) -> StepSampler:
        return self._order

    def _init_training_state(self, *arguments: Any, **more: Any) -> Any:
        """Set the sampler's epoch: on a resume within an epoch by several processes, accelerate
        does not."""
        state = super()._init_training_state(*arguments, **more)  # type: ignore[misc]
        self._order.set_epoch(state[0])
        return state

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        pass

    def _over_processes(self, counts: torch.Tensor) -> torch.Tensor:
        """Sums of these counts, on this process's device, over all processes."""
        if self.accelerator.num_processes == 1:
            return counts
        gathered: torch.Tensor = self.accelerator.gather(counts.unsqueeze(0))
        return gathered.sum(dim=0)

    def _add_means(self, held: Mapping[str, tuple[int, int]]) -> None:
        """Add the metrics that TRL has just computed of a micro-batch."""
        if self.model.training:
            self._means.add(self.state.global_step, self._metrics["train"], held)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log a line with the means of its steps in place of TRL's metrics."""
        self._metrics["train"].clear()
        super().log({**logs, **self._means.take()}, start_time)  # type: ignore[misc]


class Reporter(TrainerCallback):  # type: ignore[misc]
    """Publishes progress, writes logs/steps.jsonl, marks checkpoints as complete, and stops a run
    whose numbers are no longer finite. Only the first process writes. `tokens` are those of each
    step's rows."""

    def __init__(self, job: Job, tokens: Iterator[int]) -> None:
        self.job = job
        self._step_tokens = tokens
        # Tokens of the first `_counted` steps of the run.
        self._tokens = 0
        self._counted = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._log = StepLog(self.job, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step >= state.max_steps:
            # The finished model follows at once; a checkpoint of it would only cost time.
            control.should_save = False

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        if logs is None or "loss" not in logs:
            return
        require_finite(state.global_step, logs)
        self._tokens += sum(islice(self._step_tokens, state.global_step - self._counted))
        self._counted = state.global_step
        self._log.write(
            state.global_step,
            state.max_steps,
            lr=logs["learning_rate"],
            tokens=self._tokens,
            numbers={k: v for k, v in logs.items() if k not in ("learning_rate", "epoch")},
        )

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        wait_for_all()
        if first_process():
            mark_complete(self.job.work / f"{CHECKPOINTS}{state.global_step}")


class StopInTime(TrainerCallback):  # type: ignore[misc]
    """Saves by time where the spec names no steps, and saves and stops at the end of the step after
    which the deadline is near. At least one step is made, and after the last one nothing is
    stopped, for only the finished model is missing. To be added after the callbacks that a save
    waits for."""

    def __init__(self, job: Job) -> None:
        self.deadline = Deadline(job)
        self.stopped = False

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.deadline.begin_step()

    def on_step_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        near = self.deadline.is_near(model)
        self.stopped = near and state.global_step < state.max_steps
        if args.save_strategy == "no" and state.global_step < state.max_steps:
            control.should_save = self.deadline.save_due(model, state.global_step, None)
        if self.stopped:
            control.should_save = True
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.deadline.saved()

    def assert_not_stopped(self, state: Any) -> None:
        """Raises OutOfTimeError, on every process."""
        if self.stopped:
            self.deadline.stop(state.global_step, state.max_steps)
