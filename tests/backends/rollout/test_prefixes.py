"""Episodes that go on from another trajectory: where it is cut, what is played again, and what
becomes of a replay that leads elsewhere. The worlds are real TextCraft."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.backends.expert.test_job_expert import CONFIG as EXPERT
from tests.backends.inside.test_same_results import inside
from tests.backends.rollout.test_job_rollout import CONFIG, MODULE, PLACEMENT
from tests.backends.search.test_job_search import CONFIG as SEARCH
from tests.backends.search.test_job_search import PLACEMENT as SEARCH_PLACEMENT

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import Reply, prefix_attempts, read_rules
from agentc_backends.agents.common.prefixes import (
    CutRules,
    Prefix,
    PrefixSource,
    PrefixTurn,
    cut_sources,
    read_sources,
)
from agentc_backends.agents.common.prompts import Message
from agentc_backends.agents.rollout.play import TurnRules, play

CUT = {"cut": "every", "shortest": 1, "longest": None, "max_reward": None, "counted": True}
BEHIND = {
    **{n: v for n, v in CONFIG.items() if n not in ("prompt_seed", "prompt_per_attempt")},
    "attempts": 1,
    "max_turns": 8,
    "prefix": CUT,
}
PLACED = {**PLACEMENT, "same_state": "observation"}
TURNS = TurnRules(
    max_turns=20,
    on_invalid="observe",
    on_overflow="end",
    invalid_message="Invalid format.",
    invalid_reward="keep",
    action_span="line",
    action_space="optional",
    no_action="invalid",
)


def rules(**changes: Any) -> CutRules:
    values = {"cut": "every", "shortest": 1, "longest": None, "max_reward": None, "seed": 0}
    return CutRules(**{**values, "most": None, **changes})


def source(name: str, turns: int, reward: float | None = 0.0, **more: Any) -> PrefixSource:
    taken = tuple(PrefixTurn(reply=f"{name}{n}", answer="o") for n in range(turns))
    values = {"input": 0, "task_id": "t", "prompt_seed": 0, "task": "T", "reward": reward}
    return PrefixSource(id=name, turns=taken, **{**values, **more})


def lengths(found: Sequence[Prefix]) -> list[tuple[str, int]]:
    return [(prefix.source.id, prefix.length) for prefix in found]


def test_every_cut_leaves_a_turn_to_be_done_again() -> None:
    left: Counter[str] = Counter()
    sources = [source("a", 4), source("b", 1)]
    assert lengths(cut_sources(sources, rules(), ["t"], left)) == [("a", 1), ("a", 2), ("a", 3)]
    assert left == {"too_short": 1}
    found = cut_sources(sources, rules(shortest=0, longest=2), ["t"], left)
    assert lengths(found) == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]
    # A limit of four turns, prefix included, leaves one behind the third.
    found = cut_sources([source("a", 9)], rules(shortest=2, most=3), ["t"], left)
    assert lengths(found) == [("a", 2), ("a", 3)]


def test_a_random_cut_rests_on_its_own_trajectory_alone() -> None:
    many = [source(f"s{n}", 6) for n in range(400)]
    found = dict(lengths(cut_sources(many, rules(cut="random"), ["t"], Counter())))
    shares = Counter(found.values())
    assert set(shares) == {1, 2, 3, 4, 5}
    assert min(shares.values()) > 50  # 80 on average; three in a million are below 50
    few = dict(lengths(cut_sources(many[7:9], rules(cut="random"), ["t"], Counter())))
    assert few == {name: found[name] for name in ("s7", "s8")}
    other = dict(lengths(cut_sources(many, rules(cut="random", seed=1), ["t"], Counter())))
    assert other != found


def test_what_is_not_cut_is_counted() -> None:
    left: Counter[str] = Counter()
    sources = [
        source("good", 3, 1.0),
        source("none", 3, None),
        source("bad", 3),
        source("else", 3, task_id="u"),
    ]
    found = cut_sources(sources, rules(max_reward=0.0, longest=1), ["t"], left)
    assert lengths(found) == [("bad", 1)]
    assert left == {"above_max_reward": 2, "other_task": 1}


def test_seeds_rest_on_the_prefix_and_numbers_count_within_the_task() -> None:
    sources = [source("a", 3, task_id="t"), source("b", 3, task_id="u"), source("c", 3)]
    tasks = ["u", "t"]
    found = cut_sources(sources, rules(), tasks, Counter())
    attempts = prefix_attempts(found, tasks, 2, seed=7)
    assert [each.id for each in attempts] == [
        *("u#0", "u#1", "u#2", "u#3"),
        *(f"t#{number}" for number in range(8)),
    ]
    seeds = {(a.prefix.source.id, a.prefix.length): a.seed for a in attempts if a.prefix}
    alone = prefix_attempts(
        cut_sources([source("c", 3)], rules(), ["t"], Counter()), ["t"], 2, seed=7
    )
    assert {("c", a.prefix.length): a.seed for a in alone if a.prefix}.items() <= seeds.items()
    assert len({each.seed for each in attempts}) == len(attempts)


def leases(policy: Any, folder: Path) -> dict[str, Any]:
    return {"policy": policy.lease, "environment": inside("textcraft", folder)}


class Rest:
    """Replies of a trajectory behind a cut."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies = list(replies)
        self.first: list[Message] = []

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        self.first = self.first or list(messages)
        return Reply(self.replies.pop(0), "stop", 1, 1)


@pytest.fixture
def expert(run_job: Any, tmp_path: Path) -> Any:
    """Six expert trajectories of TextCraft's training goals, under prompt seeds of their own."""
    lease = {"environment": inside("textcraft", tmp_path / "account")}
    config = {**EXPERT, "split": "train", "limit": 3, "prompt": CONFIG["prompt"]}
    done = run_job(
        "agentc_backends.agents.expert.job_expert", config, leases=lease,
        staging=tmp_path / "expert",
    )  # fmt: skip
    assert done.code == 0, done.output
    return done


def test_expert_goes_on_from_each_of_its_own_prefixes(expert: Any, tmp_path: Path) -> None:
    """An oracle: whoever repeats the rest of a trajectory from the state behind a prefix gets its
    messages and its reward. A state that was not reached would refuse to craft."""
    rows = expert.rows("trajectories.jsonl")
    lease = {"environment": inside("textcraft", tmp_path / "here")}

    async def all_of_them() -> int:
        played = 0
        async with connect(lease, None, 1) as servers:
            meta = await servers.world.meta()
            config = {**CONFIG, "split": "train"}
            episode = read_rules(config, meta)  # type: ignore[arg-type]
            sources, _ = read_sources([rows], "Observation: ")
            tasks = list(dict.fromkeys(row["task_id"] for row in rows))
            prefixes = cut_sources(sources, rules(shortest=0), tasks, Counter())
            known = {row["id"]: row for row in rows}
            for attempt in prefix_attempts(prefixes, tasks, 1, seed=0):
                assert attempt.prefix is not None
                whole, given = known[attempt.prefix.source.id], attempt.prefix.length
                replies = [t.reply for t in attempt.prefix.source.turns]
                policy = Rest(replies[given:])
                row = await play(episode, TURNS, attempt, policy, servers.world)
                assert (row["end"], row["reward"]) == ("success", 1.0)
                assert row["rewards"] == whole["rewards"]
                assert [m["content"] for m in row["messages"]] == [
                    m["content"] for m in whole["messages"]
                ]
                assert policy.first == row["messages"][: whole["prompt_length"] + 2 * given]
                marks = [m.get("loss") for m in row["messages"] if m["role"] == "assistant"][1:]
                assert marks == [False] * given + [None] * (len(replies) - given)
                assert row["origin"] == {"input": 0, "id": whole["id"], "turns": given}
                assert row["stops"] == {"stop": len(replies) - given}
                played += 1
        return played

    assert asyncio.run(all_of_them()) == sum(row["turns"] for row in rows) > 10


@pytest.mark.slow
def test_job_plays_every_prefix_in_order_of_tasks(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    rows = expert.rows("trajectories.jsonl")
    acting, texts = policy(), []
    for concurrency in (1, 16):
        lease = leases(acting, tmp_path / str(concurrency))
        done = run_job(
            MODULE, BEHIND, placement={**PLACED, "concurrency": concurrency},
            inputs={"prefixes": [expert.data]}, leases=lease, staging=tmp_path / f"b{concurrency}",
        )  # fmt: skip
        assert done.code == 0, done.output
        texts.append((done.data / "trajectories.jsonl").read_bytes())
    assert texts[0] == texts[1]
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    found = done.rows("trajectories.jsonl")
    wanted = [
        (row["task_id"], row["id"], given)
        for row in rows
        for given in range(1, min(row["turns"] - 1, 7) + 1)
    ]
    assert [(r["task_id"], r["origin"]["id"], r["origin"]["turns"]) for r in found] == wanted
    assert done.facts["prefixes"] == len(found) == done.facts["episodes"]
    assert done.facts["diverged"] == 0
    assert done.facts["prefix_turns"] == sum(given for _, _, given in wanted)
    turns = sum(row["turns"] for row in found)
    assert done.facts["turns"] == turns - done.facts["prefix_turns"]
    assert done.facts["completion_tokens"] == 7 * done.facts["turns"]
    assert {row["turns"] for row in found} <= set(range(2, 9))


def test_turns_of_a_prefix_may_stand_outside_the_limit(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    config = {**BEHIND, "max_turns": 2, "prefix": {**CUT, "counted": False}}
    lease = leases(policy("silent"), tmp_path / "e")
    done = run_job(
        MODULE, config, placement=PLACED, inputs={"prefixes": [expert.data]}, leases=lease
    )
    assert done.code == 0, done.output
    rows = done.rows("trajectories.jsonl")
    assert {row["turns"] - row["origin"]["turns"] for row in rows} == {2}
    assert {row["invalid"] for row in rows} == {2}
    assert max(row["origin"]["turns"] for row in rows) > 2


def tampered(expert: Any, folder: Path) -> Path:
    """The trajectories, of which the first was told something else after its first action."""
    folder.mkdir()
    rows = expert.rows("trajectories.jsonl")
    rows[0]["messages"][rows[0]["prompt_length"] + 1]["content"] = "Observation: A dragon."
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "trajectories.jsonl").write_text(text, "utf-8")
    return folder


@pytest.mark.slow
def test_replay_that_leads_elsewhere_is_no_episode(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    other = tampered(expert, tmp_path / "other")
    lease = leases(policy(), tmp_path / "e")
    more: dict[str, Any] = {"inputs": {"prefixes": [other]}, "leases": lease}
    done = run_job(MODULE, BEHIND, placement=PLACED, staging=tmp_path / "none", **more)
    assert done.code == 1, done.output
    assert (
        "prefixes led elsewhere when they were played again; error_budget allows 0" in done.output
    )
    assert "'Observation: A dragon.'" in done.output
    budget = {**PLACED, "error_budget": 0.9}
    done = run_job(MODULE, BEHIND, placement=budget, staging=tmp_path / "some", **more)
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    rows = done.rows("trajectories.jsonl")
    apart = [row for row in rows if row.get("diverged")]
    assert {row["origin"]["id"] for row in apart} == {rows[0]["origin"]["id"]}
    assert {(row["end"], row["reward"]) for row in apart} == {("error", None)}
    assert len(apart) == done.facts["diverged"] == done.facts["errors"] > 0
    # Rewards alone were the same.
    done = run_job(
        MODULE, BEHIND, placement={**PLACED, "same_state": "reward"}, staging=tmp_path / "all",
        **more,
    )  # fmt: skip
    assert (done.code, done.facts["diverged"]) == (0, 0), done.output


@pytest.mark.slow
def test_paths_of_trees_are_prefixes_as_well(run_job: Any, policy: Any, tmp_path: Path) -> None:
    lease = leases(policy(), tmp_path / "e")
    trees = run_job(
        "agentc_backends.agents.search.job_search", {**SEARCH, "limit": 3},
        placement=SEARCH_PLACEMENT, leases=lease, staging=tmp_path / "trees",
    )  # fmt: skip
    assert trees.code == 0, trees.output
    config = {**BEHIND, "split": SEARCH["split"], "prompt": SEARCH["prompt"], "max_turns": 20}
    done = run_job(
        MODULE, config, placement=PLACED, inputs={"prefixes": [trees.data]}, leases=lease,
        staging=tmp_path / "behind",
    )  # fmt: skip
    assert done.code == 0, done.output
    # Every node on a path to an end is one prefix, however many paths share it.
    inner = sum(len(before_ends(row["nodes"])) for row in trees.rows("trees.jsonl"))
    assert done.facts["prefixes"] == inner > 3
    assert done.facts["prefixes_left_out"]["shared"] > 0
    assert done.facts["diverged"] == 0


def before_ends(nodes: Sequence[dict[str, Any]]) -> set[int]:
    parents = {node["id"]: node["parent"] for node in nodes}
    found: set[int] = set()
    for node in nodes:
        above = node["parent"]
        while node["terminal"] and node["id"] not in parents.values() and above:
            found.add(above)
            above = parents[above]
    return found


def test_without_a_prefix_the_job_says_what_was_left_out(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    config = {**BEHIND, "prefix": {**CUT, "max_reward": 0.5}}
    lease = leases(policy(), tmp_path / "e")
    done = run_job(
        MODULE, config, placement=PLACED, inputs={"prefixes": [expert.data]}, leases=lease
    )
    assert done.code == 1
    assert "{'above_max_reward': 6}" in done.output
