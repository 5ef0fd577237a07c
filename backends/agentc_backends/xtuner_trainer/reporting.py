"""A hook of mmengine in XTuner's process: publishes progress, keeps logs/steps.jsonl, and stops a
run whose loss is no longer a number."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
from mmengine.dist import all_reduce, get_rank
from mmengine.hooks import Hook

from agentc.runtime.process import die_with_parent
from agentc.runtime.program import Job
from agentc_backends.trl_trainers.reporting import keep_steps
from agentc_backends.xtuner_trainer.training import DIVERGED

_TOKENS = "agentc_tokens"
"""Name of the count of tokens in mmengine's message hub, which its checkpoints hold."""


class Reporter(Hook):  # type: ignore[misc]
    """Gathers the micro-batches of each optimiser step over all processes.

    `accumulation` micro-batches of a process make a step; every `log_interval` of them a line is
    written. A step's loss is the mean over its micro-batches, which is what XTuner descends on; a
    line's is the mean over the steps since the line before.
    """

    priority = "NORMAL"  # before the hook that moves the learning rate on

    def __init__(self, job_file: str, accumulation: int, log_interval: int) -> None:
        self.job = Job(Path(job_file))
        self.accumulation = accumulation
        self.log_interval = log_interval
        self._log = self.job.logs / "steps.jsonl"
        # Sums over the micro-batches of the step: their number, losses, tokens, trained tokens.
        self._sums = torch.zeros(4, dtype=torch.float64)
        # Losses and trained tokens of the steps since the last line.
        self._since: list[tuple[float, float]] = []
        self._tokens = 0.0
        self._time = 0.0

    def before_run(self, runner: Any) -> None:
        if "LOCAL_RANK" in os.environ and "TORCHELASTIC_RUN_ID" in os.environ:
            # Workers live in sessions of their own: a signal to the job's group misses them.
            die_with_parent(signal.SIGKILL)

    def before_train(self, runner: Any) -> None:
        self._time = time.monotonic()
        if get_rank() == 0:
            keep_steps(self._log, runner.iter // self.accumulation)
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
        self._check(loss / batches, step)
        self._since.append((loss / batches, trained))
        if (batch_idx + 1) % self.log_interval == 0 or step == 1:
            steps, self._since = self._since, []
            mean = sum(loss for loss, _ in steps) / len(steps)
            self._write(runner, step, mean, sum(trained for _, trained in steps))

    def _check(self, loss: float, step: int) -> None:
        if math.isfinite(loss):
            return
        message = (
            f"the loss is {loss} at step {step}; lower lr, raise warmup_ratio or lower "
            "max_grad_norm"
        )
        if get_rank() == 0:
            (self.job.work / DIVERGED).write_text(message, encoding="utf-8")
        raise FloatingPointError(message)

    def _write(self, runner: Any, step: int, loss: float, trained: float) -> None:
        if get_rank() != 0:
            return
        now = time.monotonic()
        # Of this attempt: what was counted before a resumed run began took no time now.
        previous = getattr(self, "_counted", None)
        rate = None if previous is None else (self._tokens - previous) / max(now - self._time, 1e-9)
        self._time, self._counted = now, self._tokens
        line = {
            "step": step,
            "loss": loss,
            "lr": runner.optim_wrapper.get_lr()["lr"][0],
            "num_tokens": self._tokens,
            "trained_tokens": trained,
            "tokens_per_s": rate,
        }
        norm = runner.message_hub.log_scalars.get("train/grad_norm")
        if norm is not None:
            line["grad_norm"] = norm.current()
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line, sort_keys=True) + "\n")
        total = runner.max_iters // self.accumulation
        numbers = {"loss": loss} if rate is None else {"loss": loss, "tokens_per_s": rate}
        self.job.progress(step, total, "steps", **numbers)
