"""A step's numbers: into logs/steps.jsonl and the progress line; ends a run whose loss is no
longer a number; marks checkpoints as whole."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from agentc.runtime.program import Job
from agentc_backends.openrlhf_trainers.resume import mark_whole
from agentc_backends.trl_trainers.deadline import Deadline
from agentc_backends.trl_trainers.reporting import keep_steps
from agentc_backends.trl_trainers.session import TrainingDivergedError, first_process


class StepReporter:
    """Writes from the first process only. A line's numbers are means over the steps since the line
    before, but for the rate and the gradient's norm, which are its step's own. `tokens` are those
    of each step's rows; `begun` steps were made by an attempt before this one."""

    def __init__(self, job: Job, tokens: Sequence[int], *, begun: int, log_every: int) -> None:
        self.job = job
        self.total = len(tokens)
        self._tokens = tokens
        self._log_every = log_every
        self._log = job.logs / "steps.jsonl"
        self._time = time.monotonic()
        self._reported = begun
        self._since: list[dict[str, float]] = []
        self._deadline = Deadline(job)
        if first_process():
            keep_steps(self._log, begun)

    def last(self, number: int) -> bool:
        """Whether no step follows."""
        return number >= self.total

    def step(
        self, number: int, learning_rate: float, numbers: dict[str, float], *, updated: bool
    ) -> None:
        """Take the numbers of a step, means over all processes, and whether it changed the
        weights. Raises TrainingDivergedError."""
        if not updated:
            raise TrainingDivergedError(
                f"the gradient is not finite at step {number}, where the loss is "
                f"{numbers['loss']}; lower lr, raise warmup_ratio or lower max_grad_norm"
            )
        if not all(math.isfinite(value) for value in numbers.values()):
            raise TrainingDivergedError(
                f"the loss is {numbers['loss']} at step {number}, the gradient's norm "
                f"{numbers['grad_norm']}; lower lr, raise warmup_ratio or lower max_grad_norm"
            )
        self._since.append(numbers)
        if not first_process() or not (number == 1 or number % self._log_every == 0):
            return
        steps, self._since = self._since, []
        means = {name: sum(step[name] for step in steps) / len(steps) for name in numbers}
        numbers = {**means, "grad_norm": numbers["grad_norm"]}
        now = time.monotonic()
        tokens = sum(self._tokens[self._reported : number])
        rate = tokens / max(now - self._time, 1e-9) if self._reported else None
        self._time, self._reported = now, number
        line = {"step": number, "lr": learning_rate, "tokens_per_s": rate, **numbers}
        line["num_tokens"] = float(sum(self._tokens[:number]))
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line, sort_keys=True) + "\n")
        shown: dict[str, Any] = {"loss": numbers["loss"], "tokens_per_s": rate}
        if "rewards/margins" in numbers:
            shown["margin"] = numbers["rewards/margins"]
        self.job.progress(number, self.total, "steps", **shown)

    def must_stop(self, number: int, model: Any) -> bool:
        """Whether a checkpoint must be saved after this step and the training stop, because the
        time limit is near. Asked at the end of each step."""
        return self._deadline.is_near(model) and not self.last(number)

    def saved(self, number: int) -> None:
        """Take note that the checkpoint after a step is written."""
        if first_process():
            mark_whole(self.job.work, f"global_step{number}")
        self._deadline.saved()

    def stop(self, number: int) -> NoReturn:
        """End the training after a step. Raises OutOfTimeError on every process."""
        self._deadline.stop(number, self.total)
