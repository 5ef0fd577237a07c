"""The search job against a real TextCraft server and a policy server in processes of their own."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import TEXTCRAFT, leases
from tests.support.patience import PATIENCE_S
from tests.support.prompts import prompt

from agentc.runtime.contracts.artifacts import check_artifact

MODULE = "agentc_backends.agents.search.job_search"
CONFIG = {
    "split": "train",
    "limit": 6,
    "depth": 3,
    "iterations": 3,
    "children": 3,
    "c_uct": 0.25,
    "dedup": "reply",
    "decode": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 64, "stop": []},
    "on_overflow": "drop_oldest",
    "flatten_observations": False,
    "seed": 5,
    "tie_seed": 0,
    "prompt_seed": 0,
    "prompt": prompt(instruction="Craft things.", acknowledgement="OK"),
    "reward_range": [0.0, 1.0],
    "success_at": 1.0,
    "action_span": "line",
    "action_space": "optional",
    "turn_numbers": "keep",
    "no_action": "observe",
    "invalid_message": "Invalid format.",
    "invalid_reward": "keep",
}
PLACEMENT = {
    "reach": "auto",
    "verify_share": 0.2,
    "same_state": "observation",
    "sessions_per_tree": None,
    "concurrency": 4,
    "error_budget": 0.0,
}


def trees(done: Any) -> list[dict[str, Any]]:
    """The rows without what they have cost."""
    return [{k: v for k, v in row.items() if k != "budget"} for row in done.rows("trees.jsonl")]


def server_says(server: Any, path: str) -> Any:
    request = urllib.request.Request(
        server.lease["url"] + path, headers={"Authorization": f"Bearer {server.lease['token']}"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_trees_satisfy_the_contract_and_are_counted(
    run_job: Any, policy: Any, environment: Any
) -> None:
    served = leases(policy(), environment)
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=served)
    assert done.code == 0, done.output
    check_artifact("SearchTrees", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    rows = done.rows("trees.jsonl")
    order = server_says(environment, "/meta")["splits"]["train"][:6]
    assert [row["task_id"] for row in rows] == order
    assert done.facts["trees"] == 6
    assert done.facts["reach"] == "snapshot"
    assert done.facts["nodes"] == sum(len(row["nodes"]) for row in rows) > 100
    assert done.facts["samples"] == sum(row["budget"]["samples"] for row in rows)
    assert done.facts["verified"] > 0
    assert done.facts["completion_tokens"] == 7 * done.facts["samples"]
    progress = json.loads((done.staging / "progress.json").read_text("utf-8"))
    assert (progress["done"], progress["total"], progress["unit"]) == (6, 6, "trees")
    assert {"reward", "samples_per_s"} <= set(progress["numbers"])


@pytest.mark.slow
def test_trees_do_not_depend_on_concurrency_or_on_how_nodes_are_reached(
    run_job: Any, policy: Any, environment: Any, tmp_path: Path
) -> None:
    served = leases(policy(delay=0.01), environment)
    found = []
    ways = [
        {"concurrency": 1},
        {"concurrency": 16},
        {"reach": "replay", "concurrency": 3},
        {"sessions_per_tree": 1},
    ]
    for number, way in enumerate(ways):
        done = run_job(
            MODULE, CONFIG, placement={**PLACEMENT, **way}, leases=served,
            staging=tmp_path / str(number),
        )  # fmt: skip
        assert done.code == 0, done.output
        found.append(trees(done))
    assert all(one == found[0] for one in found)


@pytest.mark.slow
def test_every_session_is_closed(run_job: Any, policy: Any, start: Any) -> None:
    # Four trees of three sessions, and one that verifies for each.
    bounded = start("bounded", [*TEXTCRAFT, "--max-sessions", "16"], "environment-token")
    config = {**CONFIG, "limit": 24}
    done = run_job(MODULE, config, placement=PLACEMENT, leases=leases(policy(), bounded))
    assert done.code == 0, done.output
    assert done.facts["errors"] == 0


@pytest.mark.slow
def test_a_killed_search_continues_where_it_was(
    run_job: Any, policy: Any, environment: Any, tmp_path: Path, job_process: Any
) -> None:
    acting = policy(delay=0.05, own=True)
    served = leases(acting, environment)
    whole = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=served, staging=tmp_path / "whole")
    before = server_says(acting, "/health")["requests"]
    staging = tmp_path / "cut"
    placement = {**PLACEMENT, "concurrency": 1}
    job = job_process(MODULE, CONFIG, placement, served, staging)
    wait_for_trees(staging, 2)
    job.send_signal(signal.SIGKILL)
    job.wait()
    with (staging / "work" / "trees.jsonl").open("ab") as journal:
        journal.write(b'{"id": "half a li')
    again = run_job(MODULE, CONFIG, placement=placement, leases=served, staging=staging)
    assert again.code == 0, again.output
    assert again.facts["resumed"] >= 2
    assert trees(again) == trees(whole)
    # Finished trees were not grown again: only the one in flight at the kill was lost.
    most = max(row["budget"]["samples"] for row in whole.rows("trees.jsonl"))
    assert server_says(acting, "/health")["requests"] - before <= before + most


@pytest.mark.slow
def test_errors_over_the_budget_fail_with_75_and_within_it_are_kept_apart(
    run_job: Any, policy: Any, environment: Any
) -> None:
    broken = leases(policy("broken"), environment)
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=broken)
    assert done.code == 75, done.output
    assert "trees ended in an infrastructure error" in done.output
    assert not (done.data / "trees.jsonl").exists()
    done = run_job(MODULE, CONFIG, placement={**PLACEMENT, "error_budget": 0.9}, leases=broken)
    assert done.code == 0, done.output
    check_artifact("SearchTrees", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    ends = [row["end"] for row in done.rows("trees.jsonl")]
    assert 0 < ends.count("error") == done.facts["errors"] < 6
    assert done.facts["resumed"] == 6 - done.facts["errors"]


@pytest.mark.parametrize("victim", ["policy", "environment"])
def test_a_dead_server_ends_the_job(
    victim: str, policy: Any, start: Any, tmp_path: Path, job_process: Any
) -> None:
    acting = policy(delay=0.2, own=True)
    world = start("environment", TEXTCRAFT, "environment-token")
    served = leases(acting, world)
    job = job_process(MODULE, {**CONFIG, "limit": 60}, PLACEMENT, served, tmp_path / "dead")
    wait_for_trees(tmp_path / "dead", 1)
    (acting if victim == "policy" else world).process.send_signal(signal.SIGKILL)
    output, _ = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 75
    assert f"the {victim} server" in output


def test_an_overflow_can_fail_the_stage(run_job: Any, policy: Any, environment: Any) -> None:
    served = leases(policy("overflow"), environment)
    config = {**CONFIG, "on_overflow": "error"}
    done = run_job(MODULE, config, placement=PLACEMENT, leases=served)
    assert done.code == 1
    assert "drop_oldest" in done.output
    done = run_job(MODULE, {**CONFIG, "on_overflow": "end"}, placement=PLACEMENT, leases=served)
    assert done.code == 0, done.output
    assert done.facts["ends"]["overflow"] > 0


def wait_for_trees(staging: Path, count: int) -> None:
    journal = staging / "work" / "trees.jsonl"
    deadline = time.monotonic() + PATIENCE_S
    while not journal.exists() or len(journal.read_bytes().splitlines()) < count:
        assert time.monotonic() < deadline, "no tree finished"
        time.sleep(0.02)
