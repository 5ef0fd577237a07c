"""What becomes of trees behind a prefix, in real TextCraft: their revisions, and what goes on from
their paths. The trees themselves: `test_roots.py`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.backends.inside.test_same_results import inside
from tests.backends.revise.test_job_revise import CONFIG as REVISE
from tests.backends.revise.test_job_revise import WITHOUT_JUDGE
from tests.backends.rollout.test_job_rollout import CONFIG as ROLLOUT
from tests.backends.rollout.test_job_rollout import MODULE as ROLLOUT_MODULE
from tests.backends.rollout.test_job_rollout import PLACEMENT as ROLLOUT_PLACEMENT
from tests.backends.search.scripted import (
    EPISODE,
    grown,
    leases,
    search_rules,
)
from tests.backends.search.test_job_search import CONFIG

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import Reply
from agentc_backends.agents.common.prefixes import Prefix, read_sources
from agentc_backends.agents.common.prompts import Message
from agentc_backends.agents.revise.judge import question
from agentc_backends.agents.revise.pairs import read_trees
from agentc_backends.agents.search.tree import prefix_roots

CUT = {"cut": "every", "shortest": 1, "longest": None, "max_reward": None, "counted": True}
BEHIND = {**{n: v for n, v in CONFIG.items() if n != "prompt_seed"}, "prefix": CUT, "depth": 6}


def spoken(row: dict[str, Any]) -> list[str]:
    """The replies of a trajectory."""
    turns = row["messages"][row["prompt_length"] :]
    return [m["content"] for m in turns if m["role"] == "assistant"]


class Rest:
    """The rest of an expert's trajectory, or a wrong turn: a tree with an end of each kind."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._replies = spoken(row)
        self._first = row["prompt_length"]
        self._asked = 0

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        done = (len(messages) - self._first) // 2
        self._asked += 1
        wrong = f"Thought: hm\nAction: get {self._asked} oak log"
        right = self._replies[min(done, len(self._replies) - 1)]
        return Reply(right if self._asked % 2 else wrong, "stop", 1, 1)


@pytest.fixture
def grown_behind(expert: Any, tmp_path: Path) -> Path:
    """Trees behind each prefix of the longest expert trajectory, grown in TextCraft by a policy
    that knows the way and leaves it."""
    row = max(expert.rows("trajectories.jsonl"), key=lambda each: each["turns"])
    lease = {"environment": inside("textcraft", tmp_path / "here")}
    prompt = replace(
        EPISODE.prompt, instruction="Craft things.", acknowledgement="OK", reply_format="react"
    )
    [whole], _ = read_sources([[row]], "Observation: ")
    prefixes = [Prefix(whole, length) for length in range(1, row["turns"])]

    async def grow_all() -> list[dict[str, Any]]:
        async with connect(lease, None, 1) as servers:
            return [
                await grown(
                    Rest(row), servers.world, rules=search_rules(depth=8, iterations=4), root=root,
                    episode=replace(EPISODE, prompt=prompt),
                )
                for root in prefix_roots(prefixes, 0, 0, counted=False)
            ]  # fmt: skip

    folder = tmp_path / "grown"
    folder.mkdir()
    rows = asyncio.run(grow_all())
    (folder / "trees.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


@pytest.mark.slow
def test_revisions_keep_the_prefix_and_never_train_it(
    run_job: Any, grown_behind: Path, environment: Any, tmp_path: Path
) -> None:
    config = {**REVISE, **WITHOUT_JUDGE, "verify": "mark", "max_revision": None}
    done = run_job(
        "agentc_backends.agents.revise.job_revise", config, inputs={"trees": [grown_behind]},
        placement={"concurrency": 8, "error_budget": 0.0},
        leases={"environment": environment.lease}, staging=tmp_path / "revise",
    )  # fmt: skip
    assert done.code == 0, done.output
    check_artifact("SFTDataset", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    found = [json.loads(line) for line in (grown_behind / "trees.jsonl").read_text().splitlines()]
    known = {f"{row['id']}#0": row for row in found}
    rows = done.rows("rows.jsonl")
    assert {row["part"] for row in rows} == {"direct", "good"}
    assert len({row["id"].rsplit("/", 1)[0] for row in rows}) == len(found) > 1
    for row in rows:
        tree = known[row["id"].rsplit("/", 1)[0]]
        given = len(tree["prefix"])
        assert row["origin"] == tree["origin"]
        turns = row["messages"][row["prompt_length"] :]
        replies = [m for m in turns if m["role"] == "assistant"]
        assert [m["content"] for m in replies[:given]] == [t["reply"] for t in tree["prefix"]]
        assert [m["loss"] for m in replies[:given]] == [False] * given
        assert [m["content"] for m in turns[1 : 2 * given : 2]] == [
            f"Observation: {t['observation']}" for t in tree["prefix"]
        ]
        own = [m.get("loss") for m in replies[given:]]
        if row["part"] == "good":
            assert set(own) == {None}
        else:
            assert own == sorted(own)
            assert set(own) == {False, True}
            # The prefix is no action of the bad path.
            assert row["bad_actions"] == own.count(False)
    # Carried out from the start of the task, prefix included, splices reach their reward.
    assert done.facts["verified"] > 0
    assert set(done.facts["unverified"]) <= {"ended_early"}


def test_the_judge_is_asked_about_the_policys_actions_alone(grown_behind: Path) -> None:
    rows = [json.loads(line) for line in (grown_behind / "trees.jsonl").read_text().splitlines()]
    [tree], _ = read_trees([rows[1:2]])
    steps = tree.steps(tree.leaves[0].id)
    asked = question(tree, steps, 0)
    assert f"Current step:\nAction: {steps[0].action}\n" in asked
    log = asked.split("Log:\n")[1].split("\n\nCurrent step")[0]
    assert log == "\n".join(
        f"Action: {t['action']}\nObservation: {t['observation']}" for t in rows[1]["prefix"]
    )
    cut = question(tree, steps, 0, oldest=1)
    assert "(1 earlier steps are left out)" in cut
    assert rows[1]["prefix"][0]["observation"] not in cut


@pytest.mark.slow
def test_paths_of_such_trees_are_gone_on_from_and_answer(
    run_job: Any, policy: Any, grown_behind: Path, tmp_path: Path
) -> None:
    config = {
        **{n: v for n, v in ROLLOUT.items() if n not in ("prompt_seed", "prompt_per_attempt")},
        "attempts": 1, "max_turns": 30, "prefix": CUT, "split": "train",
        "prompt": CONFIG["prompt"],
    }  # fmt: skip
    done = run_job(
        ROLLOUT_MODULE, config, placement={**ROLLOUT_PLACEMENT, "same_state": "observation"},
        inputs={"prefixes": [grown_behind]}, leases=leases(policy(), tmp_path / "b"),
        staging=tmp_path / "behind",
    )  # fmt: skip
    assert done.code == 0, done.output
    assert done.facts["diverged"] == 0
    rows = [json.loads(line) for line in (grown_behind / "trees.jsonl").read_text().splitlines()]
    known = {row["id"]: row for row in rows}
    played = done.rows("trajectories.jsonl")
    assert {row["origin"]["id"].split("@")[0] for row in played} == set(known)
    for row in played:
        tree = known[row["origin"]["id"].split("@")[0]]
        shared = min(len(tree["prefix"]), row["origin"]["turns"])
        assert spoken(row)[:shared] == [t["reply"] for t in tree["prefix"]][:shared]
    # A cut within what all paths of a tree share is one prefix.
    assert sum(
        row["origin"]["id"].split("@")[0] == rows[-1]["id"] and row["origin"]["turns"] == 1
        for row in played
    ) == 1  # fmt: skip
    measured = run_job(
        "agentc_backends.agents.measure.job_measure",
        {
            "answer": "best_leaf", "success_at": None, "confidence": 0.95, "success": 1.0,
            "environment": "textcraft", "reward_range": [0.0, 1.0],
        },
        inputs={"of": [grown_behind]}, staging=tmp_path / "measured",
    )  # fmt: skip
    assert measured.code == 0, measured.output
    metrics = json.loads((measured.data / "metrics.json").read_text("utf-8"))
    assert (metrics["n"], metrics["n_tasks"]) == (len(rows), 1)
    assert metrics["reward"]["mean"] == 1.0
    [steps] = metrics["step_rewards"].values()
    assert list(steps) == [str(len(row["prefix"])) for row in rows]
