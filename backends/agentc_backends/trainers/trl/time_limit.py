"""A trainer callback that saves checkpoints by time where the spec names no steps, and saves one
and stops before the job's time limit, while there is time for that.

Neighbours: common/deadline.py (when), reporting.py (marks checkpoints as whole), session.py.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from agentc.program.job import Job
from agentc_backends.trainers.common.deadline import Deadline


class StopInTime(TrainerCallback):  # type: ignore[misc]
    """Stops at the end of the step after which the deadline is near. At least one step is made;
    after the last one nothing is stopped, for only the finished model is missing. It comes after
    the callbacks that a save waits for."""

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
