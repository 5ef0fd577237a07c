"""How often trainings save where their spec does not say: so that it costs a twentieth of the time,
whatever a checkpoint weighs. The clock is pretended; the rule, its file and the job are real."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.backends.conftest import write_job

from agentc.program.job import Job
from agentc_backends.trainers.common import checkpoints
from agentc_backends.trainers.common.checkpoints import SHARE, checkpoint_bytes, first_save_seconds

BILLION = 10**9


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


def model(trained: int, frozen: int = 0, size: int = 4) -> Any:
    """A model by its numbers of weights."""

    def tensor(count: int, requires_grad: bool) -> Any:
        return SimpleNamespace(
            numel=lambda: count, element_size=lambda: size, requires_grad=requires_grad
        )

    return SimpleNamespace(parameters=lambda: [tensor(trained, True), tensor(frozen, False)])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(checkpoints, "time", found)
    return found


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(write_job(tmp_path, {}))


def train(
    clock: Clock, job: Job, weights: int, *, step_s: float, save_s: float, steps: int
) -> list[int]:
    """The steps after which such a training saves."""
    saves, seen = checkpoints.Deadline(job), model(weights)
    found = []
    for step in range(1, steps + 1):
        saves.begin_step()
        clock.now += step_s
        saves.is_near(seen)
        if saves.save_due(seen, step, None):
            clock.now += save_s
            saves.saved()
            found.append(step)
    return found


def test_what_a_checkpoint_weighs() -> None:
    assert checkpoint_bytes(model(7 * BILLION)) == 84 * BILLION
    assert checkpoint_bytes(model(10**6, frozen=7 * BILLION)) == 12 * 10**6
    assert first_save_seconds(model(7 * BILLION)) == pytest.approx(84)


@pytest.mark.parametrize(
    ("weights", "save_s", "step_s", "steps"),
    [
        (7 * BILLION, 81.0, 10.0, 100),  # 17 minutes of 7 billion weights: none
        (7 * BILLION, 81.0, 10.0, 2000),
        (7 * BILLION, 800.0, 10.0, 10_000),  # a disk that is ten times slower than expected
        (10**5, 0.02, 0.1, 500),
        (10**5, 0.02, 5.0, 20),
    ],
)
def test_saves_take_a_small_share_of_the_time(
    weights: int, save_s: float, step_s: float, steps: int, clock: Clock, job: Job
) -> None:
    found = train(clock, job, weights, step_s=step_s, save_s=save_s, steps=steps)
    spent = len(found) * save_s
    # The first may be slower than expected, which nobody knows before.
    assert spent - save_s <= SHARE * (steps * step_s + spent)
    lost = max((b - a) * step_s for a, b in zip([0, *found], [*found, steps], strict=True))
    assert lost <= save_s / SHARE + first_save_seconds(model(weights)) / SHARE + 2 * step_s


def test_a_short_training_of_a_large_model_saves_nothing(clock: Clock, job: Job) -> None:
    """Ten saves of 84 GB took as long as the training."""
    assert train(clock, job, 7 * BILLION, step_s=10.0, save_s=81.0, steps=100) == []


def test_a_later_attempt_knows_how_long_a_save_takes(clock: Clock, job: Job) -> None:
    (job.work / "save_seconds.json").write_text(json.dumps(100.0))
    saves, seen = checkpoints.Deadline(job), model(1000)
    clock.now += 100.0 / SHARE - 1
    assert not saves.save_due(seen, 1, None)
    clock.now += 2
    assert saves.save_due(seen, 2, None)


def test_a_spec_may_name_the_steps(clock: Clock, job: Job) -> None:
    saves = checkpoints.Deadline(job)
    assert [step for step in range(1, 10) if saves.save_due(model(1), step, 3)] == [3, 6, 9]
