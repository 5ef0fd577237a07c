"""The rollout job against a real TextCraft server and a policy server in processes of their own."""

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

MODULE = "agentc_backends.agents.rollout.job_rollout"
CONFIG = {
    "split": "train",
    "limit": 12,
    "attempts": 2,
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
PLACEMENT = {"concurrency": 8, "error_budget": 0.0}


def requests_made(policy: Any) -> int:
    with urllib.request.urlopen(policy.lease["url"] + "/health") as answer:
        return int(json.load(answer)["requests"])


def prompt_tokens(row: dict[str, Any]) -> int:
    """What the policy's server counts of an episode's prompts: a quarter of their letters."""
    messages = [{"role": m["role"], "content": m["content"]} for m in row["messages"]]
    return sum(
        len(json.dumps(messages[:place])) // 4
        for place in range(row["prompt_length"], len(messages))
        if messages[place]["role"] == "assistant"
    )


def test_episodes_satisfy_the_contract_and_are_counted(
    run_job: Any, policy: Any, environment: Any
) -> None:
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=leases(policy(), environment))
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    rows = done.rows("trajectories.jsonl")
    assert [row["attempt"] for row in rows] == [0, 1] * 12
    assert [row["prompt_seed"] for row in rows] == [0, 1] * 12
    assert len({row["seed"] for row in rows}) == 24
    assert done.facts["episodes"] == 24
    assert done.facts["turns"] == sum(row["turns"] for row in rows) > 24
    assert done.facts["completion_tokens"] == 7 * done.facts["turns"]
    assert [row["tokens"]["prompt"] for row in rows] == [prompt_tokens(row) for row in rows]
    assert done.facts["prompt_tokens"] == sum(map(prompt_tokens, rows))
    assert done.facts["stops"] == {"stop": done.facts["turns"]}
    assert 0 < done.facts["invalid"] < done.facts["turns"]
    progress = json.loads((done.staging / "progress.json").read_text("utf-8"))
    assert (progress["done"], progress["total"], progress["unit"]) == (24, 24, "episodes")
    assert "reward" in progress["numbers"]


def test_an_invalid_reply_costs_a_turn_and_is_answered(
    run_job: Any, policy: Any, environment: Any
) -> None:
    config = {**CONFIG, "limit": 1, "attempts": 1, "max_turns": 3}
    done = run_job(
        MODULE, config, placement=PLACEMENT, leases=leases(policy("silent"), environment)
    )
    [row] = done.rows("trajectories.jsonl")
    assert (row["end"], row["turns"], row["invalid"], row["reward"]) == ("limit", 3, 3, 0.0)
    assert row["messages"][4] == {"role": "user", "content": "Observation: Invalid format."}
    assert row["last_observation"] == "Observation: Invalid format."


def test_an_invalid_reply_can_end_the_episode(run_job: Any, policy: Any, environment: Any) -> None:
    config = {**CONFIG, "limit": 1, "attempts": 1, "on_invalid": "fail", "reward_range": [-1, 1]}
    done = run_job(
        MODULE, config, placement=PLACEMENT, leases=leases(policy("silent"), environment)
    )
    [row] = done.rows("trajectories.jsonl")
    assert (row["end"], row["turns"], row["reward"]) == ("failure", 1, -1)


def test_an_overflow_ends_the_episode_or_the_stage(
    run_job: Any, policy: Any, environment: Any, tmp_path: Path
) -> None:
    served = leases(policy("overflow"), environment)
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=served)
    assert {row["end"] for row in done.rows("trajectories.jsonl")} == {"overflow"}
    assert {row["turns"] for row in done.rows("trajectories.jsonl")} == {2}
    config = {**CONFIG, "on_overflow": "error"}
    done = run_job(MODULE, config, placement=PLACEMENT, leases=served, staging=tmp_path / "second")
    assert done.code == 1
    assert "on_overflow" in done.output


@pytest.mark.slow
def test_results_do_not_depend_on_concurrency_or_order(
    run_job: Any, policy: Any, environment: Any, tmp_path: Path
) -> None:
    served = leases(policy(delay=0.01), environment)
    config = {**CONFIG, "limit": 8}
    texts = []
    for concurrency in (1, 32):
        done = run_job(
            MODULE,
            config,
            placement={**PLACEMENT, "concurrency": concurrency},
            leases=served,
            staging=tmp_path / str(concurrency),
        )
        assert done.code == 0, done.output
        texts.append((done.data / "trajectories.jsonl").read_bytes())
    assert texts[0] == texts[1]


def test_a_flaky_server_is_tried_again_with_the_same_result(
    run_job: Any, policy: Any, environment: Any, tmp_path: Path
) -> None:
    config = {**CONFIG, "limit": 4, "max_turns": 2}
    texts = []
    for mode in ("mixed", "flaky"):
        done = run_job(
            MODULE,
            config,
            placement={"concurrency": 2, "error_budget": 0.0},
            leases=leases(policy(mode), environment),
            staging=tmp_path / mode,
        )
        if done.code == 75:  # three tries can all hit; a rerun finishes the rest
            done = run_job(
                MODULE,
                config,
                placement={"concurrency": 2, "error_budget": 0.0},
                leases=leases(policy(mode), environment),
                staging=tmp_path / mode,
            )
        assert done.code == 0, done.output
        texts.append((done.data / "trajectories.jsonl").read_bytes())
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_errors_over_the_budget_fail_with_75_and_are_played_again(
    run_job: Any, policy: Any, environment: Any
) -> None:
    broken = policy("broken")
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=leases(broken, environment))
    assert done.code == 75, done.output
    assert "infrastructure error" in done.output
    assert "500" in done.output
    assert not (done.data / "trajectories.jsonl").exists()
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=leases(policy(), environment))
    assert done.code == 0, done.output
    assert 0 < done.facts["resumed"] < 24
    assert all(row["end"] != "error" for row in done.rows("trajectories.jsonl"))


def test_errors_within_the_budget_are_kept_apart(
    run_job: Any, policy: Any, environment: Any
) -> None:
    done = run_job(
        MODULE,
        CONFIG,
        placement={"concurrency": 8, "error_budget": 0.9},
        leases=leases(policy("broken"), environment),
    )
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    errors = [row for row in done.rows("trajectories.jsonl") if row["end"] == "error"]
    assert len(errors) == done.facts["errors"] > 0
    assert all(row["reward"] is None and not row["success"] for row in errors)


def test_a_refused_request_is_no_infrastructure_error(
    run_job: Any, policy: Any, environment: Any
) -> None:
    done = run_job(
        MODULE, CONFIG, placement=PLACEMENT, leases=leases(policy("refuse"), environment)
    )
    assert done.code == 1
    assert "unsupported field: seed" in done.output


def test_an_unknown_split_names_those_that_exist(
    run_job: Any, policy: Any, environment: Any
) -> None:
    config = {**CONFIG, "split": "dev"}
    done = run_job(MODULE, config, placement=PLACEMENT, leases=leases(policy(), environment))
    assert done.code == 1
    assert "train, validation, test" in done.output


@pytest.mark.parametrize("victim", ["policy", "environment"])
def test_a_dead_server_ends_the_job(
    victim: str, policy: Any, start: Any, tmp_path: Path, job_process: Any
) -> None:
    acting = policy(delay=0.3, own=True)
    world = start("environment", TEXTCRAFT, "environment-token")
    job = job_process(MODULE, CONFIG, PLACEMENT, leases(acting, world), tmp_path / "dead")
    wait_for_rows(tmp_path / "dead", 3)
    (acting if victim == "policy" else world).process.send_signal(signal.SIGKILL)
    output, _ = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 75
    assert f"the {victim} server" in output


@pytest.mark.slow
def test_a_killed_job_continues_where_it_was(
    run_job: Any, policy: Any, environment: Any, tmp_path: Path, job_process: Any
) -> None:
    acting = policy(delay=0.1, own=True)
    whole = run_job(
        MODULE, CONFIG, placement=PLACEMENT, leases=leases(acting, environment),
        staging=tmp_path / "whole",
    )  # fmt: skip
    before = requests_made(acting)
    staging = tmp_path / "cut"
    job = job_process(MODULE, CONFIG, PLACEMENT, leases(acting, environment), staging)
    wait_for_rows(staging, 6)
    job.kill()
    job.wait()
    with (staging / "work" / "episodes.jsonl").open("ab") as journal:
        journal.write(b'{"id": "half a li')
    again = run_job(
        MODULE, CONFIG, placement=PLACEMENT, leases=leases(acting, environment), staging=staging
    )
    assert again.code == 0, again.output
    assert again.facts["resumed"] >= 6
    assert again.facts["episodes"] == 24
    name = "trajectories.jsonl"
    assert (again.data / name).read_bytes() == (whole.data / name).read_bytes()
    # Finished episodes were not played again: only those in flight at the kill were lost.
    assert requests_made(acting) - before < before + PLACEMENT["concurrency"] * 6


@pytest.mark.slow
def test_job_near_its_time_limit_stops_and_goes_on_where_it_was(
    run_job: Any, policy: Any, environment: Any, tmp_path: Path
) -> None:
    quick = leases(policy(), environment)
    few = {**PLACEMENT, "concurrency": 2}
    whole = run_job(MODULE, CONFIG, placement=few, leases=quick, staging=tmp_path / "whole")
    for seconds in (15, 60, 240):  # a busy machine takes longer to begin
        slow = leases(policy(delay=seconds / 30), environment)
        cut: Any = {"placement": few, "staging": tmp_path / f"cut-{seconds}"}
        first = run_job(MODULE, CONFIG, stop_by=time.time() + seconds, leases=slow, **cut)
        if (first.staging / "work" / "episodes.jsonl").exists():
            break
    assert first.code == 75, first.output
    assert "rollout: the time limit is near" in first.output
    assert list(first.data.iterdir()) == []
    line = json.loads((first.staging / "progress.json").read_text("utf-8"))
    assert line["out_of_time"] is True
    kept = (first.staging / "work" / "episodes.jsonl").read_bytes().splitlines()
    assert line["done"] == len(kept) < 24
    again = run_job(MODULE, CONFIG, leases=quick, **cut)
    assert again.code == 0, again.output
    assert again.facts["resumed"] == len(kept) > 0
    name = "trajectories.jsonl"
    assert (again.data / name).read_bytes() == (whole.data / name).read_bytes()


def wait_for_rows(staging: Path, count: int) -> None:
    journal = staging / "work" / "episodes.jsonl"
    deadline = time.monotonic() + PATIENCE_S
    while not journal.exists() or len(journal.read_bytes().splitlines()) < count:
        assert time.monotonic() < deadline, "no episode finished"
        time.sleep(0.02)
