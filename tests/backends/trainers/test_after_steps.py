"""What an attempt finds of the one before it: whole checkpoints, and lines of finished steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.program.job import Job
from agentc_backends.trainers.common.checkpoints import mark_complete, newest_complete
from agentc_backends.trainers.common.step_log import StepLog, keep_steps
from agentc_backends.trainers.openrlhf.session import StepReporter


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "logs").mkdir()
    spec: dict[str, Any] = {"id": "a", "key": "0", "config": {}, "placement": {}, "leases": {}}
    places = ("out", "work", "logs", "facts", "progress")
    spec |= {name: str(tmp_path / name) for name in places}
    (tmp_path / "job.json").write_text(json.dumps(spec))
    return Job(tmp_path / "job.json")


def lines(job: Job) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (job.logs / "steps.jsonl").read_text().splitlines()]


def test_newest_checkpoint_is_that_of_the_last_step(tmp_path: Path) -> None:
    assert newest_complete(tmp_path, "checkpoint-*") is None
    for step in (9, 10):
        (tmp_path / f"checkpoint-{step}" / "rank").mkdir(parents=True)
        (tmp_path / f"checkpoint-{step}" / "rank" / "weights").write_bytes(b"x")
        mark_complete(tmp_path / f"checkpoint-{step}")
    (tmp_path / "checkpoint-11").mkdir()
    assert newest_complete(tmp_path, "checkpoint-*") == tmp_path / "checkpoint-10"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-9"]


def test_step_log_forgets_what_will_be_repeated(tmp_path: Path) -> None:
    log = tmp_path / "steps.jsonl"
    log.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"st')
    keep_steps(log, 2)
    assert log.read_text() == '{"step": 1}\n{"step": 2}\n'


def test_the_first_process_alone_writes(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"loss": 2.0, "rewards/margins": 0.5}
    monkeypatch.setenv("RANK", "1")
    StepLog(job, 0).write(1, 8, lr=0.1, tokens=10, numbers=numbers)
    assert not (job.logs / "steps.jsonl").exists()
    monkeypatch.setenv("RANK", "0")
    log = StepLog(job, 0)
    log.write(1, 8, lr=0.1, tokens=10, numbers=numbers)
    log.write(8, 8, lr=0.0, tokens=30, numbers=numbers)
    first, last = lines(job)
    assert first == {"step": 1, "lr": 0.1, "num_tokens": 10.0, "tokens_per_s": None, **numbers}
    assert last["num_tokens"] == 30.0
    assert last["tokens_per_s"] > 0
    line = json.loads((job.path.parent / "progress").read_text())
    assert (line["done"], line["numbers"]["margin"]) == (8, 0.5)


def test_a_resumed_attempt_takes_no_speed_from_the_time_it_loaded(job: Job) -> None:
    (job.logs / "steps.jsonl").write_text('{"step": 4}\n{"step": 5}\n')
    reporter = StepReporter(job, [10] * 8, done=4, log_every=1, save_every=None)
    for step in (5, 6):
        reporter.step(step, 0.1, {"loss": 1.0, "grad_norm": 1.0}, updated=True)
    assert [line["step"] for line in lines(job)] == [4, 5, 6]
    assert lines(job)[1]["tokens_per_s"] is None
    assert lines(job)[2]["tokens_per_s"] > 0
    assert lines(job)[2]["num_tokens"] == 60.0
