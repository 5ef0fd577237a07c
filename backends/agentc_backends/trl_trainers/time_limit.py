"""A trainer callback that saves a checkpoint and stops before the job's time limit, while there is
time for that. Neighbours: reporting.py (marks checkpoints as whole), session.py (`fit`)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from agentc.runtime.program import Job, write_json
from agentc_backends.trl_trainers.session import OutOfTimeError

_FILE = "save_seconds.json"
"""In the job's work folder: how long the longest save took, for the attempts that follow."""
_STEPS_AHEAD = 2
_LEAST_S = 10.0
_BYTES_PER_S = 1e8
"""A file system that is slow: before the first save, that of the machine is not known."""
_MOMENTS = 8
"""Bytes of optimiser state for each trained parameter: two moments in float32."""


class StopInTime(TrainerCallback):  # type: ignore[misc]
    """Stops at the end of the step after which the time left is less than a save and two more
    steps take, by the longest seen. At least one step is made; after the last one nothing is
    stopped, for only the finished model is missing. `stopped` is the same on every process: the
    first decides. It comes after the callbacks that a save waits for."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stopped = False
        self._kept = job.work / _FILE
        self._save_s = _read_seconds(self._kept)
        self._step_s = 0.0
        self._began = 0.0
        self._ended = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._began = time.monotonic()

    def on_step_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        self._ended = time.monotonic()
        self._step_s = max(self._step_s, self._ended - self._began)
        left = self.job.time_left()
        if left is None or state.global_step >= state.max_steps:
            return
        save_s = prior_seconds(model) if self._save_s is None else self._save_s
        self.stopped = _as_first_process(left < save_s + _STEPS_AHEAD * self._step_s, args)
        if self.stopped:
            control.should_save = True
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            self._save_s = max(self._save_s or 0.0, time.monotonic() - self._ended)
            write_json(self._kept, self._save_s)

    def assert_not_stopped(self, args: Any, state: Any) -> None:
        """Raise OutOfTimeError on every process, once the first one has written all it has to."""
        if not self.stopped:
            return
        if state.is_world_process_zero:
            self.job.progress(state.global_step, state.max_steps, "steps", force=True)
            self.job.out_of_time()
        if args.world_size > 1:
            import torch.distributed

            # The launcher ends the others when one is gone.
            torch.distributed.barrier()
        raise OutOfTimeError(f"at step {state.global_step} of {state.max_steps}")


def prior_seconds(model: Any) -> float:
    """How long a save may take that nobody has measured."""
    trained = [each for each in model.parameters() if each.requires_grad]
    size = sum(each.numel() * (each.element_size() + _MOMENTS) for each in trained)
    return float(_LEAST_S + size / _BYTES_PER_S)


def _as_first_process(decided: bool, args: Any) -> bool:
    if args.world_size == 1:
        return decided
    import torch

    word = torch.tensor([int(decided)], device=args.device)
    torch.distributed.broadcast(word, src=0)
    return bool(word.item())


def _read_seconds(path: Path) -> float | None:
    try:
        return float(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
