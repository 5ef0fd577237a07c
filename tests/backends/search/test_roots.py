"""Trees whose root is the state behind the first turns of another trajectory: a toy for the rules,
real TextCraft for the job, its revisions and what goes on from its paths."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.backends.inside.test_same_results import inside
from tests.backends.search.scripted import (
    EPISODE,
    Script,
    Toy,
    drawn,
    grown,
    leases,
    reach_rules,
    search_rules,
)
from tests.backends.search.test_job_search import CONFIG, MODULE, PLACEMENT

from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.contracts.tree_contracts import tree_findings
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.prefixes import Prefix, PrefixSource, PrefixTurn
from agentc_backends.agents.search.tree import TreeRoot, prefix_roots

CUT = {"cut": "every", "shortest": 1, "longest": None, "max_reward": None, "counted": True}
BEHIND = {**{n: v for n, v in CONFIG.items() if n != "prompt_seed"}, "prefix": CUT, "depth": 6}


def source(*turns: PrefixTurn, name: str = "s") -> PrefixSource:
    return PrefixSource(
        input=0, id=name, task_id="task", prompt_seed=0, task="The game begins.", reward=0.0,
        turns=turns,
    )  # fmt: skip


def turn(action: str, shown: str, reward: float = 0.0) -> PrefixTurn:
    return PrefixTurn(reply=action, answer=f"Observation: {shown}", reward=reward)


def behind(*turns: PrefixTurn, counted: bool = False) -> TreeRoot:
    [root] = prefix_roots([Prefix(source(*turns), len(turns))], 0, 0, counted=counted)
    return root


def grow(replies: str, root: TreeRoot, **rules: Any) -> tuple[dict[str, Any], Script]:
    script = Script(replies.split())
    return asyncio.run(grown(script, Toy(), rules=search_rules(**rules), root=root)), script


def test_the_root_is_the_state_behind_the_prefix() -> None:
    row, script = grow("b x", behind(turn("c", "c"), turn("a", "c a")))
    assert drawn(row) == [("", 2, 1.0, "dead_end"), ("b", 1, 1.0, "done"), ("x", 1, 0.0, "done")]
    assert row["nodes"][1]["observation"] == "c a b"
    assert [m["content"] for m in script.prompts[0][3:]] == [
        "c", "Observation: c", "a", "Observation: c a",
    ]  # fmt: skip
    assert (row["id"], row["task_id"]) == ("task#0", "task")
    assert row["origin"] == {"input": 0, "id": "s", "turns": 2}
    assert row["prefix"] == [
        {"reply": "c", "action": "c", "observation": "c", "reward": 0.0},
        {"reply": "a", "action": "a", "observation": "c a", "reward": 0.0},
    ]
    assert len(row["messages"]) == 3
    assert list(tree_findings(row, {"reward_range": [0, 1]})) == []
    # Carried out again, for no new node.
    assert (row["budget"]["replayed_steps"], row["budget"]["steps"]) == (2, 2)


@pytest.mark.parametrize(("counted", "deepest"), [(False, 3), (True, 1)])
def test_depth_counts_the_prefix_where_that_is_asked_for(counted: bool, deepest: int) -> None:
    given = (turn("c", "c"), turn("d", "c d"))
    row, _ = grow(" ".join(f"r{n}" for n in range(40)), behind(*given, counted=counted))
    leaves = [node for node in row["nodes"] if node["end"] == "depth"]
    assert {node["depth"] for node in leaves} == {deepest}


def test_a_prefix_counts_towards_the_environments_own_limit() -> None:
    world = Toy()
    world.step_limit = 4
    root = behind(turn("c", "c"), turn("d", "c d"))
    rules = search_rules(children=1, depth=9, iterations=1)
    row = asyncio.run(grown(Script(["c"] * 9), world, rules=rules, root=root))
    assert [(node["depth"], node["end"]) for node in row["nodes"]][-1] == (2, "done")


def test_turns_of_the_prefix_are_forgotten_first() -> None:
    script = Script([f"r{n}" for n in range(8)], room=8)
    rules = search_rules(children=1, depth=1, iterations=1)
    root = behind(turn("c", "c"), turn("d", "c d"))
    asyncio.run(grown(script, Toy(), rules=rules, root=root))
    assert [m["content"] for m in script.prompts[-1][3:]] == [
        "c", "Observation: c d", "r0", "Observation: c d r0",
    ]  # fmt: skip


class Paying(Toy):
    """Pays a quarter for each step, or -1 for `n`."""

    async def begin(self, task_id: str, prompt_seed: int) -> Any:
        session = await super().begin(task_id, prompt_seed)
        stock = session.step

        async def step(action: str) -> Any:
            return replace(await stock(action), reward=-1.0 if action == "n" else 0.25)

        session.step = step  # type: ignore[method-assign]
        return session


@pytest.mark.parametrize(("kind", "last"), [("sum", 0.75), ("latest", 0.25), ("max", 0.25)])
def test_rewards_of_the_prefix_are_part_of_the_score(kind: Any, last: float) -> None:
    root = behind(turn("c", "c", 0.25), turn("d", "c d", 0.25))
    episode = replace(EPISODE, reward_kind=kind)
    rules = search_rules(children=1, depth=0, iterations=1)
    how = reach_rules("replay", 1)
    row = asyncio.run(
        grown(Script(["c"]), Paying(), rules=rules, episode=episode, root=root, how=how)
    )
    assert [node["reward"] for node in row["nodes"]] == [{"sum": 0.5}.get(kind, 0.25), last]
    assert [each["reward"] for each in row["prefix"]] == [0.25, row["nodes"][0]["reward"]]


def test_nothing_is_searched_behind_a_negative_reward() -> None:
    root = behind(turn("n", "n", -1.0))
    row = asyncio.run(grown(Script([]), Paying(), root=root, how=reach_rules("replay", 1)))
    assert drawn(row) == [("", 1, 0.0, "negative")]
    assert list(tree_findings(row, {"reward_range": [0, 1]})) == []


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([turn("c", "other")], "turn 1 of 's': 'Observation: c' was 'Observation: other'"),
        ([turn("c", "c"), turn("x", "c x")], "turn 2 of 's': the episode is over there"),
        ([turn("c", "c", 0.5)], "turn 1 of 's': a reward of 0 was 0.5"),
        ([turn("", "c")], "turn 1 of 's': no action can be read from its reply"),
    ],
)
def test_a_prefix_that_leads_elsewhere_is_no_tree(turns: Sequence[PrefixTurn], said: str) -> None:
    world = Toy()
    row = asyncio.run(grown(Script([]), world, root=behind(*turns)))
    assert (row["end"], row["diverged"]) == ("error", True)
    assert row["error"].startswith(said)
    assert list(tree_findings(row, {"reward_range": [0, 1]})) == []
    assert row["budget"]["environment_calls"] == len(world.log)
    assert world.open == 0


def test_a_given_reply_without_an_action_stays_what_it_was() -> None:
    episode = replace(EPISODE, prompt=replace(EPISODE.prompt, reply_format="react"))
    given = PrefixTurn(reply="hm", answer="Observation: What?", reward=0.0)
    first = PrefixTurn(reply="Action: a", answer="Observation: a", reward=0.0)
    row = asyncio.run(
        grown(Script(["Action: b"] * 2), Toy(), episode=episode, root=behind(first, given))
    )
    assert [(each["action"], each["observation"]) for each in row["prefix"]] == [
        ("a", "a"), ("", "What?"),
    ]  # fmt: skip
    assert drawn(row) == [("", 1, 1.0, "dead_end"), ("b", 1, 1.0, "done")]


def test_trees_behind_one_trajectory_draw_differently() -> None:
    whole = source(turn("c", "c"), turn("d", "c d"), name="s")
    roots = prefix_roots([Prefix(whole, 1), Prefix(whole, 2)], 7, 0, counted=True)
    assert [root.id for root in roots] == ["task#0", "task#1"]
    assert len({root.seed for root in roots} | {root.tie_seed for root in roots}) == 4
    [alone] = prefix_roots([Prefix(whole, 2)], 7, 0, counted=True)
    assert (alone.seed, alone.tie_seed) == (roots[1].seed, roots[1].tie_seed)


def trees(done: Any) -> list[dict[str, Any]]:
    """The rows without what they have cost."""
    return [{k: v for k, v in row.items() if k != "budget"} for row in done.rows("trees.jsonl")]


@pytest.mark.slow
def test_job_grows_a_tree_behind_every_prefix(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    acting, found = policy(), []
    ways = [{"concurrency": 1}, {"reach": "replay", "concurrency": 3}, {"concurrency": 16}]
    for number, way in enumerate(ways):
        done = run_job(
            MODULE, BEHIND, placement={**PLACEMENT, **way}, inputs={"prefixes": [expert.data]},
            leases=leases(acting, tmp_path / f"e{number}"), staging=tmp_path / str(number),
        )  # fmt: skip
        assert done.code == 0, done.output
        found.append(trees(done))
    assert found[0] == found[1] == found[2]
    check_artifact("SearchTrees", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    wanted = [
        (row["id"], given)
        for row in expert.rows("trajectories.jsonl")
        for given in range(1, min(row["turns"] - 1, BEHIND["depth"]) + 1)
    ]
    assert [(row["origin"]["id"], row["origin"]["turns"]) for row in found[0]] == wanted
    facts = done.facts
    assert facts["prefixes"] == facts["trees"] == len(wanted) > 4
    assert (facts["diverged"], facts["errors"]) == (0, 0)
    assert facts["prefix_turns"] == sum(given for _, given in wanted)
    deepest = {row["origin"]["turns"]: row["nodes"][-1]["depth"] for row in found[0]}
    for row in found[0]:
        own = max(node["depth"] for node in row["nodes"])
        assert row["origin"]["turns"] + own <= BEHIND["depth"] + 1, deepest


def test_every_node_shows_what_its_actions_lead_to(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    """An oracle: a fresh session that carries out the prefix and the path of a node sees what the
    node says."""
    config = {**BEHIND, "limit": 2, "iterations": 2}
    done = run_job(
        MODULE, config, placement=PLACEMENT, inputs={"prefixes": [expert.data]},
        leases=leases(policy(), tmp_path / "e"), staging=tmp_path / "trees",
    )  # fmt: skip
    assert done.code == 0, done.output
    rows = done.rows("trees.jsonl")
    lease = {"environment": inside("textcraft", tmp_path / "here")}

    async def check(row: dict[str, Any], world: Any) -> int:
        nodes, seen = {node["id"]: node for node in row["nodes"]}, 0
        for node in row["nodes"]:
            if not node["action"] or node["id"] in {each["parent"] for each in row["nodes"]}:
                continue
            path = []
            while node["parent"] is not None:
                path.insert(0, node)
                node = nodes[node["parent"]]
            async with world.open(row["task_id"], row["prompt_seed"]) as session:
                for each in (*row["prefix"], *path):
                    if each["action"]:
                        step = await session.step(each["action"])
                        assert (step.observation, step.reward) == (
                            each["observation"], each["reward"],
                        )  # fmt: skip
            seen += 1
        return seen

    async def check_all() -> int:
        async with connect(lease, None, 1) as servers:
            return sum([await check(row, servers.world) for row in rows])

    assert asyncio.run(check_all()) > 20


def test_a_tampered_source_fails_the_job_or_costs_its_trees(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    rows = expert.rows("trajectories.jsonl")
    rows[0]["messages"][rows[0]["prompt_length"] + 1]["content"] = "Observation: A dragon."
    (other / "trajectories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    more: dict[str, Any] = {"inputs": {"prefixes": [other]}, "leases": leases(policy(), other)}
    done = run_job(MODULE, BEHIND, placement=PLACEMENT, staging=tmp_path / "none", **more)
    assert done.code == 1, done.output
    assert "prefixes led elsewhere when they were played again" in done.output
    budget = {**PLACEMENT, "error_budget": 0.9}
    done = run_job(MODULE, BEHIND, placement=budget, staging=tmp_path / "some", **more)
    assert done.code == 0, done.output
    check_artifact("SearchTrees", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    apart = [row for row in done.rows("trees.jsonl") if row.get("diverged")]
    assert {row["origin"]["id"] for row in apart} == {rows[0]["id"]}
    assert len(apart) == done.facts["diverged"] == done.facts["errors"] > 0
