"""The answers of search trees, and metrics of what is recorded: by hand, and on a real search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.inside.test_same_results import inside
from tests.backends.rollout.test_job_rollout import CONFIG as ROLLOUT
from tests.backends.rollout.test_job_rollout import PLACEMENT as ROLLOUT_PLACEMENT
from tests.backends.search.test_job_search import CONFIG as SEARCH
from tests.backends.search.test_job_search import PLACEMENT as SEARCH_PLACEMENT

from agentc_backends.agents.evaluate.episode_scores import LoopRules, episode_actions, repeats
from agentc_backends.agents.evaluate.metrics import ExtraMetrics, measure
from agentc_backends.agents.evaluate.protocols import protocol_differences
from agentc_backends.agents.measure.job_measure import answer_path, search_answer

CONFIG = {
    "answer": "robust_child",
    "success_at": None,
    "confidence": 0.95,
    "environment": "textcraft",
    "reward_range": [0.0, 1.0],
    "success": 1.0,
}
MODULE = "agentc_backends.agents.measure.job_measure"


def node(
    number: int, parent: int | None, reward: float, visits: int, value: float, **more: Any
) -> Any:
    ends = {"terminal": False, "end": None, "action": f"a{number}" if number else "", "reply": "r"}
    return {
        "id": number, "parent": parent, "reward": reward, "visits": visits, "value": value,
        **ends, **more,
    }  # fmt: skip


DONE: dict[str, Any] = {"terminal": True, "end": "done"}
NODES = [
    node(0, None, 0.0, 6, 2.0),
    node(1, 0, 0.0, 3, 0.6),
    node(2, 0, 0.4, 2, 1.4, terminal=True, end="dead_end"),
    node(3, 1, 0.6, 1, 0.6, **DONE),
    node(4, 1, 0.0, 2, 0.0, action=""),
    node(5, 2, 1.0, 1, 1.0, **DONE),
    node(6, 2, 0.4, 1, 0.4, terminal=True, end="depth"),
    node(7, 4, 0.0, 2, 0.0, terminal=True, end="dead_end"),
    node(8, 4, 0.0, 0, 0.0),
    node(9, 7, 0.0, 1, 0.0, terminal=True, end="overflow"),
    node(10, 7, 0.0, 1, 0.0, **DONE),
]
TREE = {"task_id": "t", "split": "test", "end": "searched", "nodes": NODES}


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        # Most visits first; of equals the higher mean, then the one that was kept first.
        ("robust_child", [0, 1, 4, 7, 9]),
        ("max_child", [0, 2, 5]),
        ("best_leaf", [0, 2, 5]),
    ],
)
def test_path_of_an_answer(answer: Any, path: list[int]) -> None:
    assert [each["id"] for each in answer_path(NODES, answer)] == path


def test_answer_stands_for_an_episode() -> None:
    found = search_answer(TREE, "robust_child", 1.0)
    assert (found["end"], found["reward"], found["success"]) == ("overflow", 0.0, False)
    assert (found["turns"], found["invalid"]) == (4, 1)
    best = search_answer(TREE, "best_leaf", 1.0)
    assert (best["end"], best["reward"], best["turns"]) == ("success", 1.0, 2)
    assert search_answer(TREE, "max_child", 2.0)["end"] == "failure"
    nothing = search_answer({**TREE, "nodes": [node(0, None, 0.0, 0, 0.0)]}, "best_leaf", 1.0)
    assert (nothing["end"], nothing["turns"]) == ("limit", 0)


def test_broken_tree_is_an_error_and_no_zero() -> None:
    broken = {**TREE, "task_id": "u", "end": "error"}
    rows = [search_answer(each, "max_child", 1.0) for each in (TREE, broken)]
    metrics = measure(
        rows, 0.95, success_at=None, split="test", environment="e", reward_range=[0, 1], protocol={}
    )
    assert (metrics["reward"]["mean"], metrics["n_error"], metrics["n_tasks"]) == (1.0, 1, 1)
    assert metrics["tasks"]["u"]["reward"] is None


@pytest.fixture
def lease(policy: Any, tmp_path: Path) -> dict[str, Any]:
    return {"policy": policy().lease, "environment": inside("textcraft", tmp_path / "e")}


def test_best_leaf_of_a_search_has_the_reward_that_the_search_reports(
    run_job: Any, lease: Any, tmp_path: Path
) -> None:
    searched = run_job(
        "agentc_backends.agents.search.job_search", SEARCH, placement=SEARCH_PLACEMENT,
        leases=lease, staging=tmp_path / "trees",
    )  # fmt: skip
    assert searched.code == 0, searched.output
    found = {}
    for answer in ("best_leaf", "robust_child", "max_child"):
        done = run_job(
            MODULE, {**CONFIG, "answer": answer}, inputs={"of": [searched.data]},
            staging=tmp_path / answer,
        )  # fmt: skip
        assert done.code == 0, done.output
        found[answer] = done.facts["reward"]
        assert done.facts["n"] == SEARCH["limit"]
        assert done.facts["samples"] == searched.facts["samples"]
    assert found["best_leaf"] == pytest.approx(searched.facts["reward_mean"])
    assert found["best_leaf"] >= max(found.values())


def test_trajectories_are_measured_as_an_evaluation_measures_them(
    run_job: Any, lease: Any, tmp_path: Path
) -> None:
    rollout = run_job(
        "agentc_backends.agents.rollout.job_rollout", {**ROLLOUT, "limit": 6},
        placement=ROLLOUT_PLACEMENT, leases=lease, staging=tmp_path / "rows",
    )  # fmt: skip
    assert rollout.code == 0, rollout.output
    done = run_job(MODULE, CONFIG, inputs={"of": [rollout.data]}, staging=tmp_path / "metrics")
    assert done.code == 0, done.output
    about = {n: CONFIG[n] for n in ("success_at", "environment", "reward_range")}
    expected = measure(
        rollout.rows("trajectories.jsonl"), 0.95, split="train", protocol={}, **about
    )
    assert done.facts["reward"] == expected["reward"]["mean"]
    assert done.facts["success"] == expected["success"]["mean"]
    assert done.facts["n"] == 12


def test_comparison_says_that_a_search_is_no_episode() -> None:
    search = {"protocol": {"answer": "best_leaf", "samples_per_task": 9.0}}
    greedy = {"protocol": {"attempts": 1, "max_turns": 10}}
    said = protocol_differences(search, greedy)
    assert said == "one is the answer of a search (`best_leaf`), the other an episode of its policy"
    assert protocol_differences(search, search) is None


def test_best_of_and_loops_are_measured_as_an_evaluation_measures_them(
    run_job: Any, lease: Any, tmp_path: Path
) -> None:
    rollout = run_job(
        "agentc_backends.agents.rollout.job_rollout", {**ROLLOUT, "limit": 6},
        placement=ROLLOUT_PLACEMENT, leases=lease, staging=tmp_path / "rows",
    )  # fmt: skip
    assert rollout.code == 0, rollout.output
    loops: dict[str, Any] = {
        "times": 2, "longest": 10, "reply_format": "react", "action_span": "line",
        "action_space": "optional", "no_action": "invalid",
    }  # fmt: skip
    asked = {**CONFIG, "best_of": [1, 2], "loops": loops}
    done = run_job(MODULE, asked, inputs={"of": [rollout.data]}, staging=tmp_path / "metrics")
    assert done.code == 0, done.output
    metrics = json.loads((done.data / "metrics.json").read_text("utf-8"))
    about = {n: CONFIG[n] for n in ("success_at", "environment", "reward_range")}
    expected = measure(
        rollout.rows("trajectories.jsonl"), 0.95, split="train", protocol={},
        asked=ExtraMetrics(best_of=(1, 2), loops=LoopRules(**loops)), **about,
    )  # fmt: skip
    assert metrics == json.loads(json.dumps(expected))
    assert {"best_of(1)", "pass_at(1)", "best_of(2)", "pass_at(2)"} < set(metrics["asked"])
    assert metrics["asked"]["best_of(1)"]["mean"] == pytest.approx(metrics["reward"]["mean"])
    assert metrics["asked"]["loops"]["mean"] > 0
    assert done.facts["measured"]["loops"] == metrics["asked"]["loops"]["mean"]


def test_loops_of_an_answer_are_of_the_actions_of_its_path() -> None:
    rules = LoopRules(
        times=2, longest=3, action_span="line", action_space="optional", no_action="invalid",
        reply_format="react",
    )  # fmt: skip
    nodes = [
        node(0, None, 1.0, 1, 1.0),
        {**node(1, 0, 1.0, 1, 1.0), "reply": "Action: look", "action": "look"},
        {**node(2, 1, 1.0, 1, 1.0), "reply": " hm ", "action": ""},
        {**node(3, 2, 1.0, 1, 1.0), "reply": "hm", "action": ""},
    ]
    given = [{"reply": "Action: look", "action": "look", "observation": "o", "reward": 0.0}]
    found = search_answer(
        {**TREE, "nodes": nodes, "prefix": given, "origin": {"turns": 1}}, "robust_child", 1.0
    )
    assert episode_actions(found, rules) == ["look", "look", "hm", "hm"]
    assert repeats(episode_actions(found, rules), rules) == {1: 2}
