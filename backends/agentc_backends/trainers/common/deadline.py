"""When a training must save a checkpoint: now and then, and before the job's time limit, so that it
can still stop in time.

Each trainer asks it after each step, in its `time_limit.py` or `reporting.py`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NoReturn

from agentc.program.job import Job, write_json
from agentc_backends.trainers.common.endings import TrainingOutOfTimeError
from agentc_backends.trainers.common.processes import agreed, first_process, wait_for_all
from agentc_backends.trainers.common.saves import checkpoint_bytes, first_save_seconds, save_due

_FILE = "save_seconds.json"
"""In the job's work folder: how long the longest save took, for the attempts that follow."""
_STEPS_AHEAD = 2
_LEAST_S = 10.0
_BYTES_PER_S = 1e8
"""A file system that is slow: before the first save, that of the machine is not known."""


class Deadline:
    """Near when the time left is less than a save and two more steps take, by the longest seen."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._kept = job.work / _FILE
        self._save_s = _read_seconds(self._kept)
        self._step_s = 0.0
        self._mark: float | None = None
        self._saved_at = time.monotonic()

    def begin_step(self) -> None:
        """A step begins now; where nobody says so, it begins with the end of the one before."""
        self._mark = time.monotonic()

    def is_near(self, model: Any) -> bool:
        """Asked by every process at the end of each step: the same on all, the first decides."""
        now = time.monotonic()
        if self._mark is not None:
            self._step_s = max(self._step_s, now - self._mark)
        self._mark = now
        left = self.job.time_left()
        if left is None:
            return False
        save_s = self.save_seconds(model)
        return agreed(lambda: left < save_s + _STEPS_AHEAD * self._step_s)

    def save_seconds(self, model: Any) -> float:
        """How long a save may take: as the longest so far, of earlier attempts too; before the
        first one, what is thought."""
        return prior_seconds(model) if self._save_s is None else self._save_s

    def save_due(self, model: Any, step: int, every: int | None) -> bool:
        """Whether a checkpoint is due after a step, asked by every process at the end of each: each
        `every` steps, or where that is None so that saves take a small share of the time."""
        if every is not None:
            return step % every == 0
        save_s = first_save_seconds(model) if self._save_s is None else self._save_s
        return agreed(lambda: save_due(time.monotonic() - self._saved_at, save_s))

    def saved(self) -> None:
        """A checkpoint was saved since the last step ended."""
        assert self._mark is not None
        now = time.monotonic()
        self._save_s, self._mark = max(self._save_s or 0.0, now - self._mark), now
        self._saved_at = now
        if first_process():
            write_json(self._kept, self._save_s)

    def stop(self, step: int, steps: int) -> NoReturn:
        """Say that training ends here. Raises OutOfTimeError on every process, once the first one
        has written all it has to."""
        if first_process():
            self.job.progress(step, steps, "steps", force=True)
            self.job.out_of_time()
        # The launcher ends the others when one is gone.
        wait_for_all()
        raise TrainingOutOfTimeError(f"at step {step} of {steps}")


def prior_seconds(model: Any) -> float:
    """How long a save may take that nobody has measured."""
    return float(_LEAST_S + checkpoint_bytes(model) / _BYTES_PER_S)


def _read_seconds(path: Path) -> float | None:
    try:
        return float(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
