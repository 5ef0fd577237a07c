"""The expert job against a real TextCraft server: real rewards, prompts as in rollouts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.prompts import prompt

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.agents.common.actions import parse_action

MODULE = "agentc_backends.agents.expert.job_expert"
ROOT = Path(__file__).parents[3]
PROMPT = prompt(
    instruction="Craft things.",
    acknowledgement="OK",
    examples=[[{"role": "user", "content": "t"}, {"role": "assistant", "content": "a"}]],
)
CONFIG = {
    "split": "test",
    "limit": 15,
    "attempts": 2,
    "max_turns": None,
    "thoughts": True,
    "seed": 0,
    "prompt": PROMPT,
    "reward_range": [0.0, 1.0],
    "success_at": 1.0,
}


@pytest.fixture(scope="module")
def leases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    ready = tmp_path_factory.mktemp("environment") / "ready.json"
    paths = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
    words = [
        "-m",
        "agentc_backends.environments.textcraft.job_serve",
        "--port",
        "0",
        "--ready-file",
        str(ready),
    ]
    process = subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": paths, "AGENTC_TOKEN": "secret"},
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        address = json.loads(ready.read_text("utf-8"))
        url = f"http://{address['host']}:{address['port']}"
        yield {"environment": {"url": url, "token": "secret"}}
    finally:
        process.kill()
        process.wait()


def test_plans_are_replayed_with_the_environments_reward(run_job: Any, leases: Any) -> None:
    done = run_job(MODULE, CONFIG, leases=leases)
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    rows = done.rows("trajectories.jsonl")
    assert len(rows) == 30
    assert {(row["end"], row["reward"], row["source"]) for row in rows} == {
        ("success", 1.0, "expert")
    }
    first, second = rows[:2]
    assert first["task_id"] == second["task_id"]
    assert (first["prompt_seed"], second["prompt_seed"]) == (0, 1)
    task = first["prompt_length"] - 1
    assert first["messages"][task] != second["messages"][task]
    assert first["rewards"] == [0.0] * (first["turns"] - 1) + [1.0]


def test_replies_hold_a_thought_and_an_action_that_parses(run_job: Any, leases: Any) -> None:
    rows = run_job(MODULE, CONFIG, leases=leases).rows("trajectories.jsonl")
    for row in rows:
        replies = row["messages"][row["prompt_length"] :: 2]
        assert all(m["content"].startswith("Thought: ") for m in replies)
        assert all(parse_action(m["content"], "react") for m in replies)


def test_the_prompt_object_opens_every_trajectory(run_job: Any, leases: Any) -> None:
    [row, *_] = run_job(MODULE, CONFIG, leases=leases).rows("trajectories.jsonl")
    opening = row["messages"][: row["prompt_length"]]
    assert [m["content"] for m in opening[:-1]] == ["Craft things.", "OK", "t", "a"]
    assert "Goal: craft" in opening[-1]["content"]


def test_without_thoughts_and_with_actions_only(run_job: Any, leases: Any, tmp_path: Path) -> None:
    config = {**CONFIG, "thoughts": False}
    row = run_job(MODULE, config, leases=leases).rows("trajectories.jsonl")[0]
    assert row["messages"][row["prompt_length"]]["content"].startswith("Action: ")
    config["prompt"] = {**PROMPT, "reply_format": "action_only"}
    done = run_job(MODULE, config, leases=leases, staging=tmp_path / "second")
    row = done.rows("trajectories.jsonl")[0]
    assert ":" not in row["messages"][row["prompt_length"]]["content"].replace("minecraft:", "")


def test_long_plans_are_left_out_and_counted(run_job: Any, leases: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, {**CONFIG, "max_turns": 3}, leases=leases)
    rows = done.rows("trajectories.jsonl")
    assert all(row["turns"] <= 3 for row in rows)
    assert done.facts["left_out"] == 30 - len(rows) > 0
    nothing = run_job(
        MODULE, {**CONFIG, "max_turns": 1, "limit": 2}, leases=leases, staging=tmp_path / "none"
    )
    assert nothing.code == 1
    assert "max_turns = 1" in nothing.output


def test_a_dead_environment_is_infrastructure(run_job: Any) -> None:
    dead = {"environment": {"url": "http://127.0.0.1:9", "token": "x"}}
    done = run_job(MODULE, CONFIG, leases=dead)
    assert done.code == 75
    assert "127.0.0.1:9" in done.output
