"""What mmengine loads in XTuner's process: the hooks that report steps and save checkpoints, and
mixed precision without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from mmengine.dist import all_reduce, is_main_process
from mmengine.hooks import CheckpointHook, Hook
from mmengine.optim import OptimWrapper

from agentc.program.job import Job
from agentc_backends.trainers.common.checkpoints import Deadline
from agentc_backends.trainers.common.checks import TrainingDivergedError, require_finite
from agentc_backends.trainers.common.processes import die_with_launcher, first_process
from agentc_backends.trainers.common.step_log import StepLog
from agentc_backends.trainers.xtuner.schedule import BY_TIME, DIVERGED, STOPPED

_TOKENS = "agentc_tokens"
"""Name of the count of tokens in mmengine's message hub, which its checkpoints hold."""


class Reporter(Hook):  # type: ignore[misc]
    """Publishes progress, writes logs/steps.jsonl, and stops a run whose numbers are no longer
    finite, from the micro-batches of all processes.

    `accumulation` micro-batches of a process make a step; every `log_interval` of them a line is
    written. A step's loss is the mean over its micro-batches, which XTuner descends; a line's is
    the mean over the steps since the line before.
    """

    priority = "NORMAL"  # before the hook that changes the learning rate

    def __init__(self, job_file: str, accumulation: int, log_interval: int) -> None:
        self.job = Job(Path(job_file))
        self.accumulation = accumulation
        self.log_interval = log_interval
        # Sums over the micro-batches of the step: their number, losses, tokens, trained tokens.
        self._sums = torch.zeros(4, dtype=torch.float64)
        # Losses and trained tokens of the steps since the last line.
        self._since: list[tuple[float, float]] = []
        self._tokens = 0.0

    def before_run(self, runner: Any) -> None:
        die_with_launcher()

    def before_train(self, runner: Any) -> None:
        self._log = StepLog(self.job, runner.iter // self.accumulation)
        self._tokens = runner.message_hub.get_info(_TOKENS, 0.0)

    def after_train_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: dict[str, Any] | None = None,
    ) -> None:
        assert outputs is not None
        rows = data_batch["data"]
        self._sums += torch.tensor(
            [
                1.0,
                float(outputs["loss"].detach()),
                float(rows["attention_mask"].sum()),
                float((rows["labels"][:, 1:] != -100).sum()),
            ],
            dtype=torch.float64,
        )
        if (batch_idx + 1) % self.accumulation:
            return
        sums = self._sums.to(next(runner.model.parameters()).device)
        self._sums = torch.zeros_like(self._sums)
        all_reduce(sums)
        batches, loss, tokens, trained = sums.tolist()
        self._tokens += tokens
        runner.message_hub.update_info(_TOKENS, self._tokens)
        step = (batch_idx + 1) // self.accumulation
        norm = _gradient_norm(runner)
        try:
            require_finite(step, {"loss": loss / batches, **norm})
        except TrainingDivergedError as error:
            # It ends XTuner on every process; the job's own process tells people.
            if first_process():
                (self.job.work / DIVERGED).write_text(str(error), encoding="utf-8")
            raise
        self._since.append((loss / batches, trained))
        if (batch_idx + 1) % self.log_interval and step > 1:
            return
        steps, self._since = self._since, []
        self._log.write(
            step,
            runner.max_iters // self.accumulation,
            lr=runner.optim_wrapper.get_lr()["lr"][0],
            tokens=self._tokens,
            numbers={
                "loss": sum(loss for loss, _ in steps) / len(steps),
                "trained_tokens": sum(trained for _, trained in steps),
                **norm,
            },
        )


def _gradient_norm(runner: Any) -> dict[str, float]:
    """Of the last step, before clipping; mmengine tells it where it clips."""
    norm = runner.message_hub.log_scalars.get("train/grad_norm")
    return {} if norm is None else {"grad_norm": float(norm.current())}


class CheckpointInTime(CheckpointHook):  # type: ignore[misc]
    """CheckpointHook that also saves by time where no interval is named, and that saves and stops
    at the end of the optimiser step (`accumulation` iterations) after which the deadline is near.
    At least one step is made."""

    def __init__(self, *arguments: Any, job_file: str, accumulation: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.accumulation = accumulation
        self.deadline = Deadline(Job(Path(job_file)))
        self._stops = self._due = False

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        if batch_idx % self.accumulation == 0:
            self.deadline.begin_step()

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._due = False
        if (batch_idx + 1) % self.accumulation == 0:
            near = self.deadline.is_near(runner.model)
            last = self.is_last_train_iter(runner)
            self._stops = near and not last
            if self.interval == BY_TIME and not last:
                step = (batch_idx + 1) // self.accumulation
                self._due = self.deadline.save_due(runner.model, step, None)
        super().after_train_iter(runner, batch_idx, data_batch, outputs)
        if self._stops:
            runner.train_loop.stop_training = True
            if is_main_process():
                (self.deadline.job.work / STOPPED).touch()

    def every_n_train_iters(self, runner: Any, n: int, start: int = 0) -> bool:
        """Whether to save now."""
        return self._stops or self._due or bool(super().every_n_train_iters(runner, n, start))

    def _save_checkpoint(self, runner: Any) -> None:
        super()._save_checkpoint(runner)
        self.deadline.saved()


class CpuAmpOptimWrapper(OptimWrapper):  # type: ignore[misc]
    """OptimWrapper with bfloat16 autocast in the forward pass: mmengine's AmpOptimWrapper needs a
    GPU."""

    @contextmanager
    def optim_context(self, model: Any) -> Iterator[None]:
        with super().optim_context(model), torch.autocast("cpu", dtype=torch.bfloat16):
            yield
