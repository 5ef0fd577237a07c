"""Checkpoints: when a training saves one (from time to time, and before the job's time limit),
which one in the job's work folder is complete, and the numeric type of the finished one.

A training library writes a checkpoint file by file. A mark that is written last tells a complete
one from one that was interrupted.
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

SHARE = 0.05
"""The share of a training's time for checkpoints when `save_every` is null."""
_EXPECTED_BYTES_PER_S = 1e9
"""The write speed by which the first save is due, before one is measured."""
_SLOW_BYTES_PER_S = 1e8
"""The write speed by which time is reserved for the first save, that of a slow file system."""
_LEAST_S = 10.0
_STEPS_AHEAD = 2
_MOMENTS = 8
"""Bytes of optimiser state for each trained parameter: two moments in float32."""
_FILE = "save_seconds.json"
"""In the job's work folder: the duration of the longest save, for later attempts."""
_MARK = "complete"
_STEP = re.compile(r"\d+$")


def save_dtype_of(word: str, usual: str) -> str:
    """The numeric type of a spec's `save_dtype`; `usual` is that of `auto`."""
    return usual if word == "auto" else word


def save_as(model: Any, out: Path, dtype: str) -> None:
    """Write a model with its weights in `dtype`, also in its configuration. Raises
    TrainingFailedError where a weight exceeds the range of that type."""
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


def newest_complete(folder: Path, pattern: str) -> Path | None:
    """The newest complete checkpoint of those that match; deletes incomplete ones."""
    complete: list[Path] = []
    for path in folder.glob(pattern):
        if (path / _MARK).exists():
            complete.append(path)
        else:
            shutil.rmtree(path)
    return max(complete, key=step_of, default=None)


def mark_complete(checkpoint: Path) -> None:
    """Mark a checkpoint as complete, once its files are on the disk."""
    for path in (*checkpoint.rglob("*"), checkpoint):
        if path.is_file() or path == checkpoint:
            _sync(path)
    (checkpoint / _MARK).touch()
    _sync(checkpoint)


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was saved: the number at the end of its name."""
    match = _STEP.search(checkpoint.name)
    assert match is not None, checkpoint.name
    return int(match.group())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checkpoint_bytes(model: Any) -> int:
    """Bytes of a resumable checkpoint: trained weights and the optimiser's state."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return sum(weight.numel() * (weight.element_size() + _MOMENTS) for weight in trained)


def first_save_seconds(model: Any) -> float:
    """How long the first save is expected to take."""
    return checkpoint_bytes(model) / _EXPECTED_BYTES_PER_S


def save_due(since_s: float, save_s: float) -> bool:
    """Whether a save that takes `save_s` is due, given the time since the last one."""
    return since_s > save_s / SHARE


class Deadline:
    """Near when less time is left than a save and two more steps take, by the longest so far."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._file = job.work / _FILE
        self._save_s = _read_seconds(self._file)
        self._step_s = 0.0
        self._mark: float | None = None
        self._saved_at = time.monotonic()

    def begin_step(self) -> None:
        """A step starts now; without this call it starts at the end of the one before."""
        self._mark = time.monotonic()

    def is_near(self, model: Any) -> bool:
        """To be called by every process at the end of each step; the first one decides."""
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
        """How long a save may take: the longest so far, earlier attempts included; an assumption
        before the first."""
        return assumed_save_seconds(model) if self._save_s is None else self._save_s

    def save_due(self, model: Any, step: int, every: int | None) -> bool:
        """Whether a checkpoint is due after a step: each `every` steps, or, where that is None, so
        that saves take a small share of the time. To be called by every process at the end of each
        step."""
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
            write_json(self._file, self._save_s)

    def stop(self, step: int, steps: int) -> NoReturn:
        """Report that the training stops. Raises TrainingOutOfTimeError on every process, once the
        first one has written everything."""
        if first_process():
            self.job.progress(step, steps, "steps", force=True)
            self.job.out_of_time()
        # The launcher ends the other processes when one exits.
        wait_for_all()
        raise TrainingOutOfTimeError(f"at step {step} of {steps}")


def assumed_save_seconds(model: Any) -> float:
    """The time to reserve for a save before one is measured."""
    return float(_LEAST_S + checkpoint_bytes(model) / _SLOW_BYTES_PER_S)


def _read_seconds(path: Path) -> float | None:
    try:
        return float(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
