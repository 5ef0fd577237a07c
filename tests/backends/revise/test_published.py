"""What the released `path_collection.py` does on a recorded tree: the same rows in the same order,
with the same draws of thoughts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.backends.revise.released import (
    ScriptedJudge,
    grown,
    judge_rules,
    node,
    nothing_lost,
    recorded_row,
    rules,
    signal,
    tree_of,
)

from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.revise.collect import RevisionCounts, collect
from agentc_backends.agents.revise.judge import Cut, Judge, published_verdict
from agentc_backends.agents.revise.pairs import Pair
from agentc_backends.agents.revise.splice import shared_length

PUBLISHED = signal(draw="published")


def written(row: dict[str, Any]) -> str:
    """A row in the notation of the oracle: `-` not trained, `+` trained, S the signal."""
    parts = []
    for message in row["messages"][row["prompt_length"] :]:
        if message["role"] != "assistant":
            continue
        name = message["content"].removeprefix("T:")
        name = "S" if name.endswith("Action: wait") else name
        parts.append(name + ("-" if message.get("loss") is False else "+"))
    return " ".join(parts)


def revised(
    part: str, alpha: float, bad: str | None, path: Path
) -> tuple[list[str], list[int | None], int]:
    """Rows, thoughts (from 0) and the number of questions."""
    tree = tree_of(recorded_row("synthetic_tree.json", "1"))
    policy = ScriptedJudge({} if bad is None else {bad: "Judgement: Bad"})
    settings = rules([part], alpha=alpha, signals=PUBLISHED)

    async def run() -> list[dict[str, Any]]:
        with Journal(path / "judgements.jsonl", ("tree", "node", "pair")) as journal:
            # The released code asks for every pair anew.
            asked = judge_rules(parser="published", once_per="pair")
            judge = Judge(asked, policy, nothing_lost, journal)

            async def cuts(pairs: Sequence[Pair]) -> Sequence[Cut]:
                found = []
                for pair in pairs:
                    bad_path, good = tree.steps(pair.bad), tree.steps(pair.good)
                    shared = shared_length(bad_path, good)
                    found.append(await judge.cut(tree, bad_path, shared, pair.name))
                return found

            return await collect([tree], settings, RevisionCounts(), cuts, None)

    rows = asyncio.run(run())
    return (
        [written(row) for row in rows],
        [row.get("signal") for row in rows],
        len(policy.questions),
    )


@pytest.mark.parametrize(
    ("part", "alpha", "bad", "expected", "thoughts", "questions"),
    [
        ("revision", 0.5, "b2", ["a1- b2- S+ g2+", "c1- S+ a1+ g2+"], [1, 6], 3),
        ("revision", 0.5, "a1", ["a1- S+ g2+", "c1- S+ a1+ g2+"], [1, 6], 2),
        ("revision", 0.5, None, ["a1- b2- b3- S+ g2+", "c1- S+ a1+ g2+"], [1, 6], 4),
        ("direct", 0.5, None, ["a1- b2- b3- S+ g2+", "c1- S+ a1+ g2+"], [1, 6], 0),
        (
            "direct",
            0.3,
            None,
            ["a1- b2- b3- S+ c1+", "a1- b2- b3- S+ g2+", "c1- S+ a1+ g2+"],
            [1, 6, 4],
            0,
        ),
        (
            "direct",
            0.0,
            None,
            ["a1- b2- b3- S+ c1+", "a1- b2- b3- S+ g2+", "c1- S+ a1+ g2+"],
            [1, 6, 4],
            0,
        ),
        ("good", 0.5, None, ["a1+ g2+"], [None], 0),
        ("good", 1.0, None, [], [], 0),
        ("direct", 1.0, None, [], [], 0),
        ("revision", 1.0, "b2", [], [], 0),
    ],
)
def test_rows_of_the_recorded_tree(
    part: str,
    alpha: float,
    bad: str | None,
    expected: list[str],
    thoughts: list[int | None],
    questions: int,
    tmp_path: Path,
) -> None:
    rows, drawn, asked = revised(part, alpha, bad, tmp_path)
    assert rows == expected
    assert drawn == thoughts
    assert asked == questions


def test_a_row_message_by_message(tmp_path: Path) -> None:
    tree = tree_of(recorded_row("synthetic_tree.json", "1"))
    settings = rules(["direct"], alpha=0.5, signals=PUBLISHED)

    async def unused(pairs: Sequence[Pair]) -> Sequence[Cut]:
        raise AssertionError("`direct` requests no cut")

    rows = asyncio.run(collect([tree], settings, RevisionCounts(), unused, None))
    thought = PUBLISHED.thoughts[1]
    assert rows[0]["messages"] == [
        {"role": "system", "content": "SYS"},
        {"role": "user", "content": "INST"},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": "TASK"},
        {"role": "assistant", "content": "T:a1", "loss": False},
        {"role": "user", "content": "Observation: obs a1"},
        {"role": "assistant", "content": "T:b2", "loss": False},
        {"role": "user", "content": "Observation: obs b2"},
        {"role": "assistant", "content": "T:b3", "loss": False},
        {"role": "user", "content": "Observation: obs b3"},
        {"role": "assistant", "content": f"Thought: {thought}\nAction: wait", "loss": True},
        {"role": "user", "content": "Observation: ok."},
        {"role": "assistant", "content": "T:g2", "loss": True},
    ]
    assert (rows[0]["reward"], rows[0]["bad_reward"], rows[0]["prompt_length"]) == (1.0, 0.0, 4)


def test_rows_show_observations_as_the_search_did() -> None:
    """Agent-R has nothing before an observation, in trees as in the rows that are made of them."""
    nodes = [
        node(0, None),
        node(1, 0, 1.0, "good"),
        node(2, 0, action="bad", leaf=False),
        node(3, 2),
    ]
    tree = tree_of(grown(nodes, "task"))

    async def unused(pairs: Sequence[Pair]) -> Sequence[Cut]:
        raise AssertionError("`direct` requests no cut")

    for prefix in ("", "Observation:\n"):
        settings = rules(["direct"], alpha=0.5, observation_prefix=prefix)
        [row] = asyncio.run(collect([tree], settings, RevisionCounts(), unused, None))
        shown = [m["content"] for m in row["messages"][len(tree.opening) :] if m["role"] == "user"]
        assert shown == [f"{prefix}seen 2", f"{prefix}seen 3", f"{prefix}ok."]


@pytest.mark.parametrize(
    ("count", "order", "draws"),
    [
        (3, [2, 1, 0], [1, 6, 4, 1, 0, 6]),
        (6, [3, 4, 1, 5, 2, 0], [1, 0, 6, 8, 8, 5]),
        (10, [8, 7, 5, 9, 2, 3, 6, 1, 4, 0], [8, 8, 5, 5, 0, 2]),
    ],
)
def test_the_generator_draws_as_it_did(count: int, order: list[int], draws: list[int]) -> None:
    """`published` rests on Python's generator; another one would change every row in silence."""
    source = random.Random(123)
    numbers = list(range(count))
    source.shuffle(numbers)
    assert numbers == order
    assert [source.randint(0, 9) for _ in draws] == draws


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ("Reasons.\nJudgement: Good", True),
        ("Judgement: uncertain.", True),
        ("Judgement: Bad", False),
        ("Judgement: Not good", True),
        ("It was a good idea but. Judgment: Bad", True),
        ("Judgment: Bad", False),
        ("Judgement: Good\nJudgement: Bad", False),
        ("", False),
        ("-1", False),
        ("no verdict", False),
    ],
)
def test_the_published_parser(answer: str, passes: bool) -> None:
    assert (published_verdict(answer) in ("good", "uncertain")) is passes
