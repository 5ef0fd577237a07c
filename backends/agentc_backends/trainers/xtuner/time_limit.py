"""mmengine's hook for checkpoints, which also saves them by time where no interval is named, and
saves one and stops before the job's time limit, while there is time for that.

Neighbours: config_file.py names it; job_sft.py reads its note.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import CheckpointHook

from agentc.program.job import Job
from agentc_backends.trainers.common.deadline import Deadline
from agentc_backends.trainers.xtuner.schedule import BY_TIME
from agentc_backends.trainers.xtuner.training import STOPPED


class CheckpointInTime(CheckpointHook):  # type: ignore[misc]
    """CheckpointHook that ends the training at the end of the optimiser step (`accumulation`
    iterations) after which the deadline is near. At least one step is made."""

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
