"""A trainer callback that publishes progress, keeps logs/steps.jsonl, marks checkpoints as whole,
and stops a run whose loss is no longer a number."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from agentc.runtime.program import Job, write_rows
from agentc_backends.trl_trainers.checkpoints import mark_complete
from agentc_backends.trl_trainers.session import TrainingDivergedError


class Reporter(TrainerCallback):  # type: ignore[misc]
    """Writes from the first process only; on all of them it keeps the save points in step.
    `tokens` are those of the rows of each step."""

    def __init__(self, job: Job, tokens: Iterator[int]) -> None:
        self.job = job
        self._log = job.logs / "steps.jsonl"
        self._time = 0.0
        self._of_steps = tokens
        # Tokens of all steps up to the one that is named; None before this attempt's first line.
        self._tokens = 0
        self._counted = 0
        self._last: int | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._time = time.monotonic()
        if state.is_world_process_zero:
            keep_steps(self._log, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step >= state.max_steps:
            # The finished model follows at once; a checkpoint of it would only cost time.
            control.should_save = False

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        if logs is None or "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            raise TrainingDivergedError(
                f"the loss is {logs['loss']} at step {state.global_step}; lower lr, raise "
                "warmup_ratio or lower max_grad_norm"
            )
        if not state.is_world_process_zero:
            return
        now = time.monotonic()
        self._tokens += sum(islice(self._of_steps, state.global_step - self._counted))
        self._counted = state.global_step
        rate = None
        if self._last is not None:
            rate = (self._tokens - self._last) / max(now - self._time, 1e-9)
        self._time, self._last = now, self._tokens
        line = {"step": state.global_step, "lr": logs["learning_rate"], "tokens_per_s": rate}
        line |= {k: v for k, v in logs.items() if k not in ("learning_rate", "epoch")}
        line["num_tokens"] = float(self._tokens)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line, sort_keys=True) + "\n")
        numbers = {"loss": logs["loss"], "tokens_per_s": rate}
        if "rewards/margins" in logs:
            numbers["margin"] = logs["rewards/margins"]
        self.job.progress(state.global_step, state.max_steps, "steps", **numbers)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if args.world_size > 1:
            import torch.distributed

            torch.distributed.barrier()
        if state.is_world_process_zero:
            mark_complete(self.job.work, state.global_step)


def keep_steps(log: Path, last: int) -> None:
    """Drop the lines of steps after `last`, which a resumed run is about to repeat."""
    if not log.exists():
        return
    kept = []
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # it was being written when the job was cut off
        if line["step"] <= last:
            kept.append(line)
    whole = log.with_suffix(".tmp")
    write_rows(whole, kept)
    whole.replace(log)
