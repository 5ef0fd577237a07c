"""A trainer callback that publishes progress, keeps logs/steps.jsonl, marks checkpoints as whole,
and stops a run whose numbers are no longer finite."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from transformers import TrainerCallback

from agentc.program.job import Job
from agentc_backends.trainers.common.checkpoints import mark_whole
from agentc_backends.trainers.common.divergence import require_finite
from agentc_backends.trainers.common.processes import first_process, wait_for_all
from agentc_backends.trainers.common.step_log import StepLog
from agentc_backends.trainers.trl.session import CHECKPOINTS


class Reporter(TrainerCallback):  # type: ignore[misc]
    """Writes from the first process only; on all of them it keeps the save points in step.
    `tokens` are those of the rows of each step."""

    def __init__(self, job: Job, tokens: Iterator[int]) -> None:
        self.job = job
        self._of_steps = tokens
        # Tokens of the first steps of the run, so many of them.
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
        self._tokens += sum(islice(self._of_steps, state.global_step - self._counted))
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
            mark_whole(self.job.work / f"{CHECKPOINTS}{state.global_step}")
