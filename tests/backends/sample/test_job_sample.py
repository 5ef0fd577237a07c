"""The sample job against a policy server in a process of its own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentc.runtime.contracts.artifacts import ContractError, check_artifact
from agentc.runtime.contracts.turn_contracts import candidate_seed

MODULE = "agentc_backends.agents.sample.job_sample"
CONFIG = {
    "candidates": 6,
    "decode": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 64, "stop": []},
    "fraction": 1.0,
    "limit": None,
    "take": "hash",
    "turns": None,
    "on_overflow": "drop",
    "seed": 11,
}
PLACEMENT = {"concurrency": 8, "error_budget": 0.0}
CONTRACT = {"candidates": 6, "seed": 11}


def episode(task: str, attempt: int = 0, turns: int = 3, **more: Any) -> dict[str, Any]:
    """A trajectory of so many turns, with an acknowledgement in its prompt."""
    messages = [
        {"role": "user", "content": "Craft things."},
        {"role": "assistant", "content": "OK"},
        {"role": "user", "content": f"Crafting commands:\ncraft {task} using 1 oak log"},
    ]
    for turn in range(turns):
        messages.append({"role": "assistant", "content": f"Action: step {turn}"})
        if turn + 1 < turns:
            messages.append({"role": "user", "content": f"Observation: nothing {turn}"})
    return {
        "id": f"{task}#{attempt}",
        "task_id": task,
        "attempt": attempt,
        "split": "train",
        "messages": messages,
        "prompt_length": 3,
        "reward": 0.5,
        "end": "limit",
        **more,
    }


def rollouts(folder: Path, *rows: dict[str, Any]) -> Path:
    folder.mkdir(parents=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "trajectories.jsonl").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture
def played(tmp_path: Path) -> dict[str, list[Path]]:
    rows = [episode(f"task{n}", attempt) for n in range(4) for attempt in range(2)]
    return {"rollouts": [rollouts(tmp_path / "played", *rows)]}


def served(policy: Any) -> dict[str, Any]:
    return {"policy": policy.lease}


def test_each_turn_gets_candidates_with_their_tokens(
    run_job: Any, policy: Any, played: Any
) -> None:
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=served(policy()), inputs=played)
    assert done.code == 0, done.output
    check_artifact("Candidates", done.data, CONTRACT, {}, done.facts)
    rows = done.rows("candidates.jsonl")
    assert [row["id"] for row in rows[:4]] == ["task0#0@0", "task0#0@1", "task0#0@2", "task0#1@0"]
    assert len(rows) == 24
    second = rows[1]
    assert [m["content"] for m in second["prompt"][3:]] == [
        "Action: step 0",
        "Observation: nothing 0",
    ]
    assert (second["taken"], second["reward"], second["prompt_length"]) == (
        "Action: step 1",
        0.5,
        3,
    )
    for place, candidate in enumerate(second["candidates"]):
        assert candidate["seed"] == candidate_seed(11, "task0#0@1", place)
        scores = [-0.5 - (token % 7) / 10 for token in candidate["tokens"]]
        assert candidate["logprob_sum"] == pytest.approx(sum(scores), abs=1e-12)
        assert candidate["logprob_n"] == len(scores)
    assert len({c["seed"] for row in rows for c in row["candidates"]}) == 144
    assert done.facts["replies"] == 144
    assert done.facts["unique"] == sum(row["candidates_unique"] for row in rows) > 48
    assert done.facts["ends"] == {"sampled": 24}
    assert done.facts["completion_tokens"] == 7 * 144


def test_a_contract_sees_a_seed_or_a_count_that_is_not_its_own(
    run_job: Any, policy: Any, played: Any
) -> None:
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=served(policy()), inputs=played)
    for contract, wrong in (({"seed": 12}, "seed"), ({"candidates": 5}, "6, expected 5")):
        with pytest.raises(ContractError, match=wrong):
            check_artifact("Candidates", done.data, {**CONTRACT, **contract}, {}, done.facts)


@pytest.mark.slow
def test_results_do_not_depend_on_concurrency_or_order(
    run_job: Any, policy: Any, played: Any, tmp_path: Path
) -> None:
    acting = served(policy(delay=0.01))
    texts = []
    for concurrency in (1, 32):
        done = run_job(
            MODULE, CONFIG, placement={**PLACEMENT, "concurrency": concurrency}, leases=acting,
            inputs=played, staging=tmp_path / str(concurrency),
        )  # fmt: skip
        assert done.code == 0, done.output
        texts.append((done.data / "candidates.jsonl").read_bytes())
    assert texts[0] == texts[1]


def test_a_prompt_too_long_leaves_a_turn_without_candidates_or_ends_the_stage(
    run_job: Any, policy: Any, played: Any, tmp_path: Path
) -> None:
    full: Any = {"leases": served(policy("overflow")), "placement": PLACEMENT, "inputs": played}
    done = run_job(MODULE, CONFIG, **full)
    assert done.code == 0, done.output
    check_artifact("Candidates", done.data, CONTRACT, {}, done.facts)
    ends = Counter((row["turn"], row["end"]) for row in done.rows("candidates.jsonl"))
    assert ends == {(0, "sampled"): 8, (1, "sampled"): 8, (2, "overflow"): 8}
    failed = run_job(
        MODULE, {**CONFIG, "on_overflow": "error"}, staging=tmp_path / "failed", **full
    )
    assert failed.code == 1
    assert "`drop` would leave the turn" in failed.output


def test_errors_are_counted_against_a_budget_and_asked_again(
    run_job: Any, policy: Any, played: Any
) -> None:
    done = run_job(
        MODULE, CONFIG, placement=PLACEMENT, leases=served(policy("broken")), inputs=played
    )
    assert done.code == 75, done.output
    assert "of 24 turns ended in an infrastructure error" in done.output
    assert not (done.data / "candidates.jsonl").exists()
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=served(policy()), inputs=played)
    assert done.code == 0, done.output
    assert 0 < done.facts["resumed"] < 24
    assert {row["end"] for row in done.rows("candidates.jsonl")} == {"sampled"}


def test_errors_within_the_budget_are_rows_without_candidates(
    run_job: Any, policy: Any, played: Any
) -> None:
    lenient = {"concurrency": 8, "error_budget": 0.9}
    done = run_job(
        MODULE, CONFIG, placement=lenient, leases=served(policy("broken")), inputs=played
    )
    assert done.code == 0, done.output
    check_artifact("Candidates", done.data, CONTRACT, {}, done.facts)
    lost = [row for row in done.rows("candidates.jsonl") if row["end"] == "error"]
    assert len(lost) == done.facts["errors"] > 0
    assert all(row["candidates"] == [] for row in lost)


def test_candidates_that_are_all_the_same_are_told(run_job: Any, policy: Any, played: Any) -> None:
    silent = served(policy("silent"))
    done = run_job(MODULE, CONFIG, placement=PLACEMENT, leases=silent, inputs=played)
    assert done.code == 0, done.output
    assert done.facts["alike"] == 24
    assert "the candidates of every turn are the same text" in done.output


def test_turns_of_a_prefix_and_lost_episodes_are_left_out(
    run_job: Any, policy: Any, tmp_path: Path
) -> None:
    begun = episode("later", turns=3)
    begun["messages"][3]["loss"] = False
    broken = episode("lost", turns=1, end="error", reward=None)
    given = {
        "rollouts": [rollouts(tmp_path / "one", begun, broken), rollouts(tmp_path / "two", begun)]
    }
    done = run_job(
        MODULE, {**CONFIG, "turns": 2}, placement=PLACEMENT, leases=served(policy()), inputs=given
    )
    assert done.code == 0, done.output
    check_artifact("Candidates", done.data, CONTRACT, {}, done.facts)
    rows = done.rows("candidates.jsonl")
    assert [row["id"] for row in rows] == ["later#0.0@1", "later#1.0@1"]
    assert [row["input"] for row in rows] == [0, 1]
    # Equal turns of two inputs are drawn apart.
    assert rows[0]["candidates"] != rows[1]["candidates"]
    left_out = {"infrastructure_error": 1, "later_turn": 2, "turn_of_a_prefix": 2}
    assert done.facts["left_out"] == left_out


def test_a_share_of_nothing_says_what_to_do(run_job: Any, policy: Any, played: Any) -> None:
    few = {**CONFIG, "fraction": 0.1}
    done = run_job(MODULE, few, placement=PLACEMENT, leases=served(policy()), inputs=played)
    assert done.code == 1
    assert "of 8 trajectories 0 were taken" in done.output


def test_what_ended_a_reply_is_recorded(run_job: Any, share: Any, played: Any) -> None:
    rules = json.dumps([{"reply": ["look. STOP here", "continue"]}])
    command = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0"]
    command += ["--ready-file", "READY", "--rules", rules, "--served-name", "policy"]
    server = share("policy", command, "a token", model="policy", log="policy.log")
    config = {**CONFIG, "decode": {**CONFIG["decode"], "stop": ["NEVER", "STOP"]}}
    done = run_job(MODULE, config, placement=PLACEMENT, leases=served(server), inputs=played)
    assert done.code == 0, done.output
    check_artifact("Candidates", done.data, CONTRACT, {}, done.facts)
    found = [c for row in done.rows("candidates.jsonl") for c in row["candidates"]]
    assert {(c["text"], c.get("stopped_by")) for c in found} == {
        ("look.", "STOP"),
        ("continue", None),
    }
