"""Trees that search.mcts has grown in TextCraft, revised and tried out in the same game."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.backends.revise.test_job_revise import CONFIG, WITHOUT_JUDGE
from tests.backends.search.test_job_search import CONFIG as SEARCH
from tests.backends.search.test_job_search import PLACEMENT as SEARCHING

from agentc.runtime.contracts.artifacts import check_artifact

RULES = [
    {
        "reply": [
            "Thought: look\nAction: inventory",
            "Thought: log\nAction: get 1 acacia logs",
            "Thought: craft\nAction: craft 4 acacia planks using 1 acacia logs",
            "no action at all",
        ]
    }
]


@pytest.mark.slow
def test_what_a_search_grew_can_be_revised_and_replayed(
    tmp_path: Any, run_job: Any, share: Any, environment: Any
) -> None:
    command = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0"]
    command += ["--ready-file", "READY", "--rules", json.dumps(RULES), "--served-name", "policy"]
    policy = share("policy", command, "policy-token", model="policy", log="policy.log")
    servers = {"policy": policy.lease, "environment": environment.lease}
    searched = run_job(
        "agentc_backends.agents.search.job_search",
        {**SEARCH, "limit": 3, "depth": 4, "iterations": 5, "children": 5},
        placement=SEARCHING,
        leases=servers,
        staging=tmp_path / "search",
    )
    assert searched.code == 0, searched.output
    config = {
        **CONFIG,
        **WITHOUT_JUDGE,
        "parts": ["direct", "good", "optimal"],
        "best_reward": 1.0,
        "verify": "mark",
        "max_revision": 20,
    }
    done = run_job(
        "agentc_backends.agents.revise.job_revise",
        config,
        inputs={"trees": [searched.data]},
        placement={"concurrency": 8, "error_budget": 0.0},
        leases={"environment": environment.lease},
        staging=tmp_path / "revise",
    )
    assert done.code == 0, done.output
    check_artifact("SFTDataset", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    assert done.facts["trees"] == 3
    assert done.facts["rows_by_part"]["direct"] == 20
    # A log that the bad part left over may let the good one reach the goal sooner than it did.
    assert set(done.facts["unverified"]) <= {"ended_early"}
    assert done.facts["verified"] > 10
    for row in done.rows("rows.jsonl"):
        spoken = [m for m in row["messages"][row["prompt_length"] :] if m["role"] == "assistant"]
        if row["part"] == "direct":
            marks = [message["loss"] for message in spoken]
            assert marks == sorted(marks), "bad replies, then the signal and good ones"
            assert row["reward"] == 1.0 > row["bad_reward"]
