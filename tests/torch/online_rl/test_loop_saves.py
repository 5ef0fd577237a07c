"""What a run takes a save to last for, where its time limit cuts a phase off."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from tests.torch.trl.jobs import make_job
from torch import nn
from torch.optim import Optimizer

from agentc.program.job import Job
from agentc_backends.agents.common.failures import OutOfTimeError
from agentc_backends.trainers.common import checkpoints
from agentc_backends.trainers.online_rl import loop
from agentc_backends.trainers.online_rl.loop import Run, RunSchedule
from agentc_backends.trainers.online_rl.replay import ReplayBuffer
from agentc_backends.trainers.online_rl.state import RunFiles, RunStart

HOUR = 3600.0


class Clock:
    """Time, which leaps where a test says so."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


class LongPhases:
    """A learner of one weight. Each phase takes an hour by the clock; `last` is cut off then."""

    phases = ("critic", "actor")

    def __init__(self, clock: Clock, last: int) -> None:
        self.modules: Mapping[str, nn.Module] = {"policy": nn.Linear(1, 1)}
        self.optimisers: Mapping[str, Optimizer] = {}
        self._clock, self._left = clock, last

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> dict[str, float]:
        self._clock.ahead += HOUR
        self._left -= 1
        with torch.no_grad():
            self.modules["policy"].bias.add_(1)  # type: ignore[operator]
        if not self._left:
            raise OutOfTimeError("the time limit is near")
        return {}


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Run]:
    """A run in one folder, whose phase of that number is cut off."""
    clock = Clock()
    for module in (loop, checkpoints):
        monkeypatch.setattr(module, "time", clock)
    job = Job(make_job(tmp_path, "offline_rl", {}, {}))

    def begin(last: int) -> Run:
        return Run(
            job=job,
            schedule=RunSchedule(iterations=4, warmup=0, keep=(), save_every=10),
            acting=None,
            learner=LongPhases(clock, last),
            buffer=ReplayBuffer(None, 1.0),
            files=RunFiles(job.work, 1),
            folder=job.work,
            keep_policy=lambda folder: None,
            start=RunStart(),
        )

    return begin


def test_a_phase_that_was_cut_off_is_no_part_of_the_save(
    begun: Callable[[int], Run], tmp_path: Path
) -> None:
    """Else every later attempt would stop an hour before its limit, for the longest save counts."""
    run = begun(3)
    with pytest.raises(OutOfTimeError):
        asyncio.run(run.go())
    assert (run.place.iteration, run.place.phase) == (1, 1)
    assert 0 < json.loads((tmp_path / "work" / "save_seconds.json").read_text()) < HOUR


def test_a_measured_save_takes_the_place_of_what_is_thought(begun: Callable[[int], Run]) -> None:
    """Of earlier attempts too: short limits would else leave no time to play in."""
    with pytest.raises(OutOfTimeError):
        asyncio.run(begun(3).go())
    again = begun(1)
    with pytest.raises(OutOfTimeError):
        asyncio.run(again.go())
    thought = checkpoints.assumed_save_seconds(again.saved_modules)
    assert thought >= 10
    assert again.save_seconds() != thought
