"""Selection, backup and growth against what the released search does (its class was run for these
numbers), and what every tree must satisfy."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.backends.search.scripted import (
    EPISODE,
    Script,
    Toy,
    drawn,
    grown,
    reach_rules,
    search_rules,
)

from agentc.runtime.contracts.tree_contracts import tree_findings
from agentc_backends.agents.common.episode import Step
from agentc_backends.agents.common.prompts import ACT, reply_text
from agentc_backends.agents.search.tree import Tree, uct
from agentc_backends.clients.errors import ContextOverflowError


@pytest.mark.parametrize(
    ("value", "visits", "parent", "score"),
    [
        (1, 2, 2, 0.647176),
        (0, 1, 2, 0.208139),
        (1, 1, 2, 1.208139),
        (0, 1, 1, 0.0),
        (1, 1, 1, 1.0),
        (2, 3, 7, 0.868012),
        (0, 4, 7, 0.174370),
        (0, 3, 7, 0.201345),
        (1, 3, 4, 0.503278),
        (0.75, 2, 10, 0.643246),
        (50, 1, 8, 50.360507),
        (0, 0, 8, 0.0),
    ],
)
def test_uct(value: float, visits: int, parent: int, score: float) -> None:
    assert uct(value, visits, parent, 0.25) == pytest.approx(score, abs=5e-7)


def test_unvisited_children_come_first() -> None:
    tree = Tree(0.25, random.Random(0))
    seen, new = (tree.new_child(tree.root, reply=name) for name in ("seen", "new"))
    tree.attach(tree.root, [seen, new])
    leaf = tree.new_child(seen, reward=1.0, terminal=True, end="done")
    other = tree.new_child(seen)
    tree.attach(seen, [leaf, other])
    assert (seen.value, seen.visits) == (1.0, 1)
    assert tree.best_child(tree.root) is new


def grow(replies: str, **rules: Any) -> tuple[dict[str, Any], Script]:
    script = Script(replies.split())
    return asyncio.run(grown(script, Toy(), rules=search_rules(**rules))), script


def test_equal_siblings_collapse() -> None:
    row, script = grow("a a b x")
    assert drawn(row) == [
        ("", 2, 1.0, "dead_end"),
        ("a", 2, 1.0, "dead_end"),
        ("a b", 1, 1.0, "done"),
        ("a x", 1, 0.0, "done"),
    ]
    assert (row["iterations"], len(script.prompts)) == (1, 4)
    assert row["budget"]["samples"] == 4


def test_functions_are_called_in_a_tree() -> None:
    """`reply_format: tools`: the tree of the same actions, whose prompts hold calls and results."""
    prompt = replace(EPISODE.prompt, reply_format="tools", observation_prefix="")
    script = Script([reply_text(prompt, action) for action in ("a", "a", "b", "x")])
    episode = replace(EPISODE, prompt=prompt)
    row = asyncio.run(grown(script, Toy(), rules=search_rules(), episode=episode))
    assert drawn(row) == drawn(grow("a a b x")[0])
    assert script.prompts[0][0] == {"role": "system", "content": "", "tools": [ACT]}
    [*_, reply, result] = script.prompts[-1]
    assert reply == {"role": "assistant", "content": reply_text(prompt, "a")}
    assert result == {"role": "tool", "content": "a"}


def test_a_search_ends_with_its_root() -> None:
    row, script = grow("x x")
    assert drawn(row) == [("", 1, 0.0, "dead_end"), ("x", 1, 0.0, "done")]
    assert (row["iterations"], len(script.prompts)) == (1, 2)


def test_a_negative_reward_is_a_leaf_worth_nothing() -> None:
    row, script = grow("n a b c d e")
    assert drawn(row) == [
        ("", 4, 1.0, "dead_end"),
        ("n", 1, 0.0, "negative"),
        ("a", 3, 1.0, "dead_end"),
        ("a b", 1, 1.0, "done"),
        ("a c", 2, 0.0, "dead_end"),
        ("a c d", 1, 0.0, "depth"),
        ("a c e", 1, 0.0, "depth"),
    ]
    assert (row["iterations"], len(script.prompts)) == (1, 6)


def test_the_longest_path_has_one_action_more_than_the_depth() -> None:
    row, _ = grow(" ".join(f"r{n}" for n in range(40)), iterations=20)
    leaves = [node for node in row["nodes"] if node["end"] == "depth"]
    assert {node["depth"] for node in leaves} == {3}
    assert row["nodes"][0]["visits"] == len(leaves) == 8
    assert row["nodes"][0]["value"] == 0.0
    assert row["iterations"] == 4


def test_iterations_bound_the_descents() -> None:
    row, script = grow(" ".join(f"r{n}" for n in range(40)), iterations=1)
    assert row["iterations"] == 1
    assert len(script.prompts) == 6
    assert sum(not node["terminal"] for node in row["nodes"][1:]) == 3


def test_ties_are_drawn_by_their_seed_alone() -> None:
    names = " ".join(f"r{n}" for n in range(40))
    trees = {str(drawn(grow(names, iterations=1, tie_seed=seed)[0])) for seed in range(20)}
    assert len(trees) > 1
    assert drawn(grow(names, tie_seed=7, seed=1)[0]) == drawn(grow(names, tie_seed=7, seed=2)[0])


def test_dedup_by_action_and_not_at_all() -> None:
    episode = replace(EPISODE, prompt=replace(EPISODE.prompt, reply_format="react"))
    replies = ["Thought: one\nAction: a", "Thought: two\nAction: a"]
    counts = {}
    for dedup in ("reply", "action", "none"):
        rules = search_rules(dedup=dedup, iterations=1, depth=1)
        world = Toy()
        row = asyncio.run(grown(Script(replies * 2), world, rules=rules, episode=episode))
        counts[dedup] = sum(node["depth"] == 1 for node in row["nodes"])
        assert world.log.count("step a") == 2, "the same action is carried out once at each depth"
    assert counts == {"reply": 2, "action": 1, "none": 2}
    row = asyncio.run(
        grown(Script(["a"] * 4), Toy(), rules=search_rules(dedup="none", iterations=1, depth=1))
    )
    assert len(row["nodes"]) == 5


def test_a_reply_without_an_action_asks_nothing_of_the_environment() -> None:
    episode = replace(EPISODE, prompt=replace(EPISODE.prompt, reply_format="react"))
    world = Toy()
    script = Script(["hello", "Action: a", "Action: b", "Action: x"])
    rules = search_rules(children=1, depth=2, iterations=1)
    row = asyncio.run(grown(script, world, rules=rules, episode=episode))
    told = row["nodes"][1]
    assert (told["action"], told["observation"]) == ("", "What?")
    assert row["nodes"][3]["end"] == "done"
    assert row["nodes"][3]["observation"] == "a b"
    assert [word for word in world.log if "step" in word] == ["step a", "step b"]
    rules = replace(rules, no_action="last_line")
    row = asyncio.run(grown(Script(["well\nx"]), Toy(), rules=rules, episode=episode))
    assert (row["nodes"][1]["action"], row["nodes"][1]["end"]) == ("x", "done")


def test_a_long_conversation_forgets_its_oldest_turns() -> None:
    script = Script([f"r{n}" for n in range(8)], room=8)
    rules = search_rules(children=1, depth=3, iterations=1)
    row = asyncio.run(grown(script, Toy(), rules=rules))
    assert row["nodes"][-1]["end"] == "depth"
    # Three messages open it; reply 1 stays, observation 1 and reply 2 go.
    assert [m["content"] for m in script.prompts[-1][3:]] == [
        "r0", "Observation: r0 r1", "r2", "Observation: r0 r1 r2",
    ]  # fmt: skip
    assert row["budget"]["model_calls"] == row["budget"]["samples"] + 1


def test_a_prompt_without_room_can_end_the_node_or_the_stage() -> None:
    rules = search_rules(children=2, depth=9, iterations=1, on_overflow="end", dedup="none")
    row = asyncio.run(grown(Script(["r"] * 9, room=4), Toy(), rules=rules))
    overflown = [node for node in row["nodes"] if node["end"] == "overflow"]
    assert [(node["depth"], node["visits"]) for node in overflown] == [(1, 1)]
    assert list(tree_findings(row, {"reward_range": [0, 1]})) == []
    with pytest.raises(ContextOverflowError):
        asyncio.run(
            grown(Script(["r"] * 9, room=4), Toy(), rules=replace(rules, on_overflow="error"))
        )
    row = asyncio.run(grown(Script([], room=2), Toy()))
    assert drawn(row) == [("", 1, 0.0, "overflow")]


def test_rewards_add_up_where_the_environment_pays_by_step() -> None:
    class Paying(Toy):
        async def begin(self, task_id: str, prompt_seed: int) -> Any:
            session = await super().begin(task_id, prompt_seed)
            step = session.step

            async def paid(action: str) -> Any:
                return replace(await step(action), reward=0.25)

            session.step = paid  # type: ignore[method-assign]
            return session

    rules = search_rules(children=1, depth=2, iterations=1)
    for kind, last in (("sum", 0.75), ("latest", 0.25), ("max", 0.25)):
        episode = replace(EPISODE, reward_kind=kind)
        row = asyncio.run(grown(Script(["r"] * 3), Paying(), rules=rules, episode=episode))
        assert row["nodes"][-1]["reward"] == last


@given(st.data())
def test_every_tree_is_consistent(data: st.DataObject) -> None:
    """Whatever the policy says: counts follow from leaves, each way of reaching nodes gives the
    same tree, and all sessions are closed."""
    letters = data.draw(st.lists(st.sampled_from("abxnc"), min_size=1, max_size=12))
    rules = search_rules(
        depth=data.draw(st.integers(1, 4)),
        iterations=data.draw(st.integers(1, 6)),
        children=data.draw(st.integers(1, 3)),
        dedup=data.draw(st.sampled_from(["reply", "action", "none"])),
    )
    trees = []
    for copying, sessions in (("snapshot", 1), ("snapshot", 3), ("fork", 3), ("replay", 1)):
        world = Toy()
        how = reach_rules(copying, sessions, verify_share=1.0)
        row = asyncio.run(grown(Script(letters * 400), world, rules=rules, how=how))
        assert list(tree_findings(row, {"reward_range": [0, 1]})) == []
        assert row["budget"]["environment_calls"] == len(world.log)
        assert world.open == 0
        assert world.most <= sessions + 1
        trees.append(row["nodes"])
    assert all(tree == trees[0] for tree in trees)


def test_numbered_turns_are_one_reply_with_plain_ones_where_the_rule_says_so() -> None:
    """The released search writes `Action 1:` as `Action:` before it compares siblings."""
    script = ["Thought 1: t\nAction 1: x", "Thought: t\nAction: x"]
    episode = replace(EPISODE, prompt=replace(EPISODE.prompt, reply_format="react"))
    kept: dict[str, list[tuple[str, str]]] = {}
    for rule in ("keep", "drop"):
        rules = search_rules(action_span="last", turn_numbers=rule, no_action="last_line")
        row = asyncio.run(grown(Script(script * 9), Toy(), rules=rules, episode=episode))
        kept[rule] = [
            (n["reply"], n["action"]) for n in row["nodes"] if n["parent"] == row["nodes"][0]["id"]
        ]
    assert kept["drop"] == [("Thought: t\nAction: x", "x")]
    assert kept["keep"] == [(script[0], "Action 1: x"), (script[1], "x")]


def test_a_reply_without_an_action_counts_against_the_environments_own_limit() -> None:
    episode = replace(EPISODE, prompt=replace(EPISODE.prompt, reply_format="react"))
    world = Toy()
    world.step_limit = 3
    rules = search_rules(children=1, depth=9, iterations=1)
    row = asyncio.run(grown(Script(["no format"] * 9), world, rules=rules, episode=episode))
    assert [node["end"] for node in row["nodes"]][-1] == "done"
    assert max(node["depth"] for node in row["nodes"]) == 3


@pytest.mark.parametrize(("rule", "after"), [("keep", [0.5, 0.5]), ("zero", [0.0, 0.25])])
def test_what_a_reply_without_an_action_does_to_the_best_reward_so_far(
    rule: Any, after: list[float]
) -> None:
    """As in rollouts: where the best one counts, it starts again from zero."""

    class Graded(Toy):
        async def begin(self, task_id: str, prompt_seed: int) -> Any:
            session = await super().begin(task_id, prompt_seed)
            stock = session.step

            async def step(action: str) -> Step:
                return replace(await stock(action), reward={"half": 0.5, "less": 0.25}[action])

            session.step = step  # type: ignore[method-assign]
            return session

    row = asyncio.run(
        grown(
            Script(["half", "", "less", "x"]),
            Graded(),
            rules=search_rules(depth=2, iterations=1, children=1, invalid_reward=rule),
            how=reach_rules("replay", sessions=1),
            episode=replace(EPISODE, reward_kind="max"),
        )
    )
    assert [node["action"] for node in row["nodes"]] == ["", "half", "", "less"]
    assert [node["reward"] for node in row["nodes"]] == [0.0, 0.5, *after]
