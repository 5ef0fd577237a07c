"""A policy out of a run: the last one, one that was kept, and one that was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MODULE = "agentc_backends.data.pick.job_pick"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    kept = folder / "checkpoints" / "2"
    kept.mkdir(parents=True)
    (folder / "target").mkdir()
    told = {"run": 1, "algorithm": "archer", "iterations": 5, "checkpoints": [2]}
    (folder / "run.json").write_text(json.dumps(told))
    for name in ("curve.jsonl", "episodes.jsonl"):
        (folder / name).write_text("{}\n")
    (folder / "config.json").write_text("last")
    (kept / "config.json").write_text("kept")
    return folder


@pytest.mark.parametrize(("at", "found"), [(None, "last"), (5, "last"), (2, "kept")])
def test_files_of_the_policy_alone(at: int | None, found: str, run: Path, run_job: Any) -> None:
    done = run_job(MODULE, {"at": at}, inputs={"run": [run]})
    assert done.code == 0, done.output
    out = done.staging / "data"
    assert {path.name: path.read_text() for path in out.iterdir()} == {"config.json": found}
    facts = json.loads((done.staging / "facts.json").read_text())
    assert facts == {"iteration": 5 if at is None else at, "algorithm": "archer"}


def test_an_iteration_that_was_not_kept_is_refused(run: Path, run_job: Any) -> None:
    done = run_job(MODULE, {"at": 3}, inputs={"run": [run]})
    assert done.code == 1
    assert "no policy after iteration 3; there are those after 2, 5. Add 3" in done.output
