"""The adapter before a real AgentGym-protocol server that it has launched itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.backends.agentgym.conftest import TOKEN, Adapter, StartAdapter, ours
from tests.backends.agentgym.text_solver import plan
from tests.support.patience import PATIENCE_S
from tests.support.prompts import prompt

from agentc.runtime.contracts.artifacts import check_artifact

HERE = Path(__file__).parent


def json_of(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone(pid: int, within: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + within
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def test_meta_declares_what_was_asked_for(adapter: Adapter) -> None:
    meta = adapter.meta()
    assert meta["splits"]["test"] == [f"textcraft_{number}" for number in range(31)]
    assert (meta["reward_range"], meta["reward_kind"]) == ([0.0, 1.0], "latest")
    assert meta["identity"]["greeting"] == "This is environment TextCraft."
    assert len(meta["identity"]["fingerprint"]) == 32
    assert meta["identity"]["probes"] == [0, 15, 30, 31, 46, 60]


def test_episodes_are_won_through_the_adapter(adapter: Adapter) -> None:
    won = tried = 0
    for task in adapter.meta()["splits"]["train"]:
        session, first = adapter.open(task)
        step = {"reward": 0, "done": False}
        for action in plan(first):
            assert not step["done"]
            step = adapter.post("/step", id=session, action=action)
            assert step["reward"] in (0, 1)
            assert step["done"] is (step["reward"] == 1)
        tried += bool(plan(first))
        won += step["reward"]
        adapter.post("/close", id=session)
    assert tried >= 10
    assert won >= tried / 2


def test_a_rollout_runs_on_it(adapter: Adapter, run_job: Any, tmp_path: Path) -> None:
    ready = tmp_path / "policy.json"
    policy = subprocess.Popen(
        [sys.executable, str(HERE.parent / "rollout" / "policy_server.py"), str(ready)]
    )
    try:
        while not ready.exists():
            assert policy.poll() is None
            time.sleep(0.02)
        address = json_of(ready)
        url = f"http://{address['host']}:{address['port']}"
        lease = {"url": str(adapter.client.base_url), "token": TOKEN}
        done = run_job(
            "agentc_backends.agents.rollout.job_rollout",
            CONFIG,
            placement={"concurrency": 8, "error_budget": 0.0},
            leases={
                "environment": lease,
                "policy": {"url": url, "token": "policy-token", "model": "policy", "log": "x"},
            },
        )
    finally:
        policy.kill()
        policy.wait()
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    rows = done.rows("trajectories.jsonl")
    assert [row["task_id"] for row in rows] == [f"textcraft_{n}" for n in range(31, 41)]
    assert {row["end"] for row in rows} <= {"limit", "success"}


CONFIG = {
    "split": "train",
    "limit": 10,
    "attempts": 1,
    "decode": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 64, "stop": []},
    "max_turns": 6,
    "on_invalid": "observe",
    "on_overflow": "end",
    "seed": 5,
    "prompt_seed": 0,
    "prompt_per_attempt": True,
    "prompt": prompt(instruction="Craft things.", acknowledgement="OK"),
    "reward_range": [0.0, 1.0],
    "success_at": 1.0,
    "invalid_message": "Invalid format.",
    "action_span": "line",
    "action_space": "optional",
    "no_action": "invalid",
    "invalid_reward": "keep",
}


@pytest.mark.slow
def test_the_same_server_has_the_same_fingerprint_and_other_tasks_another(
    start_adapter: StartAdapter,
) -> None:
    one, same = (start_adapter(ours()).meta()["identity"] for _ in range(2))
    assert one == same
    other = start_adapter({**ours(), "command": [*ours()["command"], "--distractors", "0"]})
    assert other.meta()["identity"]["fingerprint"] != one["fingerprint"]
    assert other.meta()["identity"]["splits_sha256"] == one["splits_sha256"]


def test_the_launched_server_ends_with_the_adapter(start_adapter: StartAdapter) -> None:
    stopped, killed = start_adapter(ours()), start_adapter(ours())
    for running, number in ((stopped, signal.SIGTERM), (killed, signal.SIGKILL)):
        (upstream,) = children(running.process.pid)
        assert os.getpgid(upstream) == upstream
        running.process.send_signal(number)
        running.process.wait(timeout=PATIENCE_S)
        assert gone(upstream)
    assert stopped.process.returncode == 0


def test_the_adapter_ends_with_the_launched_server(start_adapter: StartAdapter) -> None:
    running = start_adapter(ours())
    (upstream,) = children(running.process.pid)
    os.kill(upstream, signal.SIGKILL)
    assert running.process.wait(timeout=PATIENCE_S) == 3
    assert "the launched server ended with -9" in running.log.read_text()


def test_a_command_is_run_only_where_that_is_allowed(start_adapter: StartAdapter) -> None:
    launch = {"command": ["touch", "gone-wrong"]}
    running = start_adapter(launch, ready=False, allow=False)
    assert running.process.wait(timeout=PATIENCE_S) == 2
    assert "touch gone-wrong" in running.log.read_text()
    assert "AGENTC_ALLOW_LAUNCH=1" in running.log.read_text()
    assert not Path("gone-wrong").exists()


@pytest.mark.parametrize(
    ("launch", "says"),
    [
        ({"command": ["/nowhere/python"]}, "/nowhere/python cannot be started"),
        ({"command": [sys.executable, "-c", "raise SystemExit(9)"]}, "ended with 9 before"),
        (
            {"command": [sys.executable, "-c", "import time; time.sleep(60)"],
             "ready_timeout_s": 0.5},
            "not ready in 0.5 s",
        ),
    ],
)  # fmt: skip
def test_a_server_that_does_not_come_up(
    start_adapter: StartAdapter, launch: dict[str, Any], says: str
) -> None:
    running = start_adapter(launch, ready=False)
    assert running.process.wait(timeout=PATIENCE_S) == 2
    assert says in running.log.read_text()
    assert "Traceback" not in running.log.read_text()


def test_a_task_that_the_server_lacks_stops_the_start(start_adapter: StartAdapter) -> None:
    running = start_adapter(ours(), splits={"test": "9000"}, ready=False)
    assert running.process.wait(timeout=PATIENCE_S) == 2
    assert "data_idx 9000 is not in" in running.log.read_text()
