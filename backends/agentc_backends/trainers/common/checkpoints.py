"""When a training must save a checkpoint: now and then, and before the job's time limit, so that it
can still stop in time.

Each trainer asks it after each step, in its `time_limit.py` or `reporting.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any, NoReturn

from agentc.program.job import Job, write_json
from agentc_backends.trainers.common.checks import TrainingFailedError, TrainingOutOfTimeError
from agentc_backends.trainers.common.processes import decide_on_first, first_process, wait_for_all


def save_dtype_of(word: str, usual: str) -> str:
    """The numeric type that a spec's `save_dtype` means; `usual` is that of `auto`."""
    return usual if word == "auto" else word


def save_as(model: Any, out: Path, dtype: str) -> None:
    """Write a whole model with its weights in `dtype`, which names it in the configuration too.
    Raises TrainingFailedError where that type cannot hold one of them."""
    import torch

    model.to(getattr(torch, dtype))
    if dtype == "float16":
        for name, weight in model.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise TrainingFailedError(
                    f"save_dtype: float16 cannot hold the weights of {name}, which go beyond "
                    "65504; set bfloat16"
                )
    model.save_pretrained(str(out))


_MARK = "complete"
_STEP = re.compile(r"\d+$")


def newest_whole(folder: Path, pattern: str) -> Path | None:
    """The newest whole checkpoint of those that match; removes those that are not whole."""
    whole: list[Path] = []
    for path in folder.glob(pattern):
        if (path / _MARK).exists():
            whole.append(path)
        else:
            shutil.rmtree(path)
    return max(whole, key=step_of, default=None)


def mark_whole(checkpoint: Path) -> None:
    """Declare a checkpoint whole, once its files are on the disk."""
    for path in (*checkpoint.rglob("*"), checkpoint):
        if path.is_file() or path == checkpoint:
            _sync(path)
    (checkpoint / _MARK).touch()
    _sync(checkpoint)


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was saved: the number that ends its name."""
    found = _STEP.search(checkpoint.name)
    assert found is not None, checkpoint.name
    return int(found.group())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SHARE = 0.05
"""Of a training's time that its checkpoints may take when `save_every` is null."""
_EXPECTED_BYTES_PER_S = 1e9
"""Before the first save is measured."""
_MOMENTS = 8
"""Bytes of optimiser state for each trained parameter: two moments in float32."""


def checkpoint_bytes(model: Any) -> int:
    """Bytes of a resumable checkpoint: weights that are trained, and the optimiser's state."""
    trained = [each for each in model.parameters() if each.requires_grad]
    return sum(each.numel() * (each.element_size() + _MOMENTS) for each in trained)


def first_save_seconds(model: Any) -> float:
    """How long the first save probably takes."""
    return checkpoint_bytes(model) / _EXPECTED_BYTES_PER_S


def save_due(since_s: float, save_s: float) -> bool:
    """Whether a save that takes `save_s` is due, given the time since the last one."""
    return since_s > save_s / SHARE


_FILE = "save_seconds.json"
"""In the job's work folder: how long the longest save took, for the attempts that follow."""
_STEPS_AHEAD = 2
_LEAST_S = 10.0
_SLOW_BYTES_PER_S = 1e8
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
        return decide_on_first(lambda: left < save_s + _STEPS_AHEAD * self._step_s)

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
        return decide_on_first(lambda: save_due(time.monotonic() - self._saved_at, save_s))

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
    return float(_LEAST_S + checkpoint_bytes(model) / _SLOW_BYTES_PER_S)


def _read_seconds(path: Path) -> float | None:
    try:
        return float(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
