"""A step's numbers: into logs/steps.jsonl and the progress line; ends a run whose numbers
are no longer finite; marks checkpoints as whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from agentc.program.job import Job
from agentc_backends.trainers.common.checkpoints import mark_whole
from agentc_backends.trainers.common.deadline import Deadline
from agentc_backends.trainers.common.divergence import not_updated, require_finite
from agentc_backends.trainers.common.processes import first_process
from agentc_backends.trainers.common.step_log import StepLog
from agentc_backends.trainers.openrlhf.resume import FOLDER, TAG


class StepReporter:
    """Writes from the first process only. A line's numbers are means over the steps since the line
    before, but for the rate and the gradient's norm, which are its step's own. `tokens` are those
    of each step's rows; `begun` steps were made by an attempt before this one."""

    def __init__(
        self,
        job: Job,
        tokens: Sequence[int],
        *,
        begun: int,
        log_every: int,
        save_every: int | None,
    ) -> None:
        self.job = job
        self.total = len(tokens)
        self._tokens = tokens
        self._log_every = log_every
        self._save_every = save_every
        self._log = StepLog(job, begun)
        self._since: list[dict[str, float]] = []
        self._deadline = Deadline(job)

    def last(self, number: int) -> bool:
        """Whether no step follows."""
        return number >= self.total

    def step(
        self, number: int, learning_rate: float, numbers: dict[str, float], *, updated: bool
    ) -> None:
        """Take the numbers of a step, means over all processes, and whether it changed the
        weights. Raises TrainingDivergedError."""
        if not updated:
            raise not_updated(number, numbers["loss"])
        require_finite(number, numbers)
        self._since.append(numbers)
        if number > 1 and number % self._log_every:
            return
        steps, self._since = self._since, []
        means = {name: sum(step[name] for step in steps) / len(steps) for name in numbers}
        self._log.write(
            number,
            self.total,
            lr=learning_rate,
            tokens=sum(self._tokens[:number]),
            numbers={**means, "grad_norm": numbers["grad_norm"]},
        )

    def must_stop(self, number: int, model: Any) -> bool:
        """Whether a checkpoint must be saved after this step and the training stop, because the
        time limit is near. Asked at the end of each step."""
        return self._deadline.is_near(model) and not self.last(number)

    def save_due(self, number: int, model: Any) -> bool:
        """Whether a checkpoint is to be saved after this step; the last one needs none, for the
        finished model follows. Asked after `must_stop`."""
        return not self.last(number) and self._deadline.save_due(model, number, self._save_every)

    def saved(self, number: int) -> None:
        """Take note that the checkpoint after a step is written."""
        if first_process():
            mark_whole(self.job.work / FOLDER / f"{TAG}{number}")
        self._deadline.saved()

    def stop(self, number: int) -> NoReturn:
        """End the training after a step. Raises OutOfTimeError on every process."""
        self._deadline.stop(number, self.total)
