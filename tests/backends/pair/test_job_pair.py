"""The pair job: files in, pairs.jsonl out, and a failure with the counts when nothing pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONFIG = {
    "margin": 0.0,
    "on_tie": "drop",
    "on_null": "drop",
    "directions": "both",
    "max_extra_rounds": 5,
    "prompt_from": "winner",
    "sources": "expert",
    "max_per_task": None,
    "seed": 0,
}
MODULE = "agentc_backends.pair_contrast.job_pair"


def trajectories(folder: Path, reward: float, reply: str) -> Path:
    row = {
        "id": "a#0",
        "task_id": "a",
        "attempt": 0,
        "prompt_seed": 0,
        "messages": [
            {"role": "user", "content": "craft a stick"},
            {"role": "assistant", "content": reply},
        ],
        "prompt_length": 1,
        "reward": reward,
        "end": "success" if reward else "failure",
    }
    folder.mkdir()
    (folder / "trajectories.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return folder


def inputs(tmp_path: Path, explored: float) -> dict[str, list[Path]]:
    return {
        "expert": [trajectories(tmp_path / "expert", 1.0, "Action: é")],
        "rollouts": [trajectories(tmp_path / "explored", explored, "Action: no")],
    }


def test_pairs_are_written_with_facts_that_count(run_job: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, CONFIG, inputs=inputs(tmp_path, 0.0))
    assert done.code == 0, done.output
    [pair] = done.rows("pairs.jsonl")
    assert pair["chosen"] == [{"role": "assistant", "content": "Action: é"}]
    assert done.facts["lose"] == 1
    assert done.facts["pairs"] == 1


def test_no_pairs_is_a_failure_that_shows_the_counts(run_job: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, CONFIG, inputs=inputs(tmp_path, 1.0))
    assert done.code == 1
    assert "not one pair" in done.output
    assert "tie 1" in done.output
    assert not (done.data / "pairs.jsonl").exists()


def test_a_setting_that_the_program_does_not_know_fails(run_job: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, {**CONFIG, "typo": 1}, inputs=inputs(tmp_path, 0.0))
    assert done.code != 0
    assert "typo" in done.output
