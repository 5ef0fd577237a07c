"""The first error of a bad trajectory: verdicts read strictly, answers shared and kept."""

from __future__ import annotations

import asyncio
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
    tree_of,
)

from agentc_backends.agents.common.episode import Reply
from agentc_backends.agents.common.failures import ServerLostError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.revise.judge import OPENING, Cut, Judge, question, strict_verdict
from agentc_backends.agents.revise.pairs import Message, RevisionTree
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError

BAD = "It is of no use.\nJudgement: Bad"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Because.\nJudgement: Good", "good"),
        ("Judgment: bad.", "bad"),
        ("**Judgement:** Uncertain", "uncertain"),
        ("Judgement: **Good**", "good"),
        ("judgement : [BAD]\n", "bad"),
        ("Judgement: Good\nJudgement: Bad", "bad"),
        ("Judgement: Not good", "unparsed"),
        ("Judgement: Good, I think", "unparsed"),
        ("Judgement: Good or Bad", "unparsed"),
        ("It was a good idea.", "unparsed"),
        ("Judgement:", "unparsed"),
        ("Judgement: Goodness", "unparsed"),
        ("<think>If so, Judgement: Good</think>\nJudgement: Bad", "bad"),
        ("Judgement: Bad\n<think>Or Judgement: Good", "bad"),
        ("<think>Perhaps Judgement: Good", "unparsed"),
        ("so Judgement: Good</think>I am not sure.", "unparsed"),
        ("", "unparsed"),
    ],
)
def test_the_strict_parser(answer: str, verdict: str) -> None:
    assert strict_verdict(answer) == verdict


def small_tree() -> RevisionTree:
    """a > {b > {c, d}, e}: two bad paths that begin alike."""
    return tree_of(
        grown(
            [
                node(0, None),
                node(1, 0, action="a", leaf=False),
                node(2, 1, action="b", leaf=False),
                node(3, 2, action="c"),
                node(4, 2, action="d"),
                node(5, 1, 1.0, action="e"),
            ],
            "task",
        )
    )


def cuts(
    policy: Any,
    folder: Path,
    wanted: Sequence[tuple[int, int, str]],
    lost: Any = nothing_lost,
    tree: RevisionTree | None = None,
    **changes: Any,
) -> tuple[list[Cut], Judge]:
    """Cuts of the paths to leaves (leaf, shared actions, pair), side by side."""
    tree = tree or small_tree()

    async def run() -> tuple[list[Cut], Judge]:
        with Journal(folder / "judgements.jsonl", ("tree", "node", "pair")) as journal:
            judge = Judge(judge_rules(**changes), policy, lost, journal)
            asked = [judge.cut(tree, tree.steps(leaf), n, pair) for leaf, n, pair in wanted]
            try:
                return list(await asyncio.gather(*asked)), judge
            finally:
                judge.close()

    return asyncio.run(run())


BOTH = [(3, 1, "p1"), (4, 1, "p2")]


def test_paths_that_begin_alike_share_answers(tmp_path: Path) -> None:
    policy = ScriptedJudge({"c": BAD})
    found, judge = cuts(policy, tmp_path, BOTH)
    assert found == [Cut(3, flagged=3), Cut(3)]
    assert len(policy.questions) == 4
    assert judge.wanted == 6
    assert [row["node"] for row in judge.used] == [1, 2, 3, 4]
    assert len(set(policy.seeds)) == 4


def test_each_pair_may_ask_anew(tmp_path: Path) -> None:
    policy = ScriptedJudge({"b": BAD})
    found, judge = cuts(policy, tmp_path, BOTH, once_per="pair")
    assert found == [Cut(2, flagged=2)] * 2
    assert len(policy.questions) == judge.wanted == 4
    assert len(set(policy.seeds)) == 4


def test_a_rerun_asks_for_nothing_that_was_answered(tmp_path: Path) -> None:
    first, before = cuts(ScriptedJudge({"b": BAD}), tmp_path, BOTH)
    silent = ScriptedJudge({}, otherwise="never asked")
    again, after = cuts(silent, tmp_path, BOTH)
    assert again == first
    assert silent.questions == []
    assert after.used == before.used


@pytest.mark.parametrize(
    ("policy", "changes", "expected"),
    [
        (ScriptedJudge({}), {}, Cut(3)),
        (ScriptedJudge({}), {"on_no_bad": "pair"}, Cut(None, without="no_bad")),
        (ScriptedJudge({"a": BAD}), {}, Cut(1, flagged=1)),
        # Where paths part after the first action, that one is not judged.
        (ScriptedJudge({"a": BAD, "c": BAD}), {"start": "divergence"}, Cut(3, flagged=3)),
        (ScriptedJudge({"b": "hm"}), {"unparsed": "bad"}, Cut(2, flagged=2)),
        (ScriptedJudge({"b": "hm"}), {"unparsed": "good"}, Cut(3)),
        (ScriptedJudge({"b": "hm"}), {"unparsed": "pair"}, Cut(None, without="unparsed")),
        (ScriptedJudge({"b": "Judgement: Uncertain"}), {}, Cut(3)),
        (ScriptedJudge({"b": "Judgement: Not good"}), {"parser": "published"}, Cut(3)),
    ],
)
def test_where_a_path_is_cut(
    policy: Any, changes: dict[str, Any], expected: Cut, tmp_path: Path
) -> None:
    found, _ = cuts(policy, tmp_path, [(3, 1, "p")], **changes)
    assert found == [expected]


def test_the_question_holds_what_is_needed() -> None:
    tree = small_tree()
    asked = question(tree, tree.steps(3), 1)
    assert asked.startswith(OPENING)
    assert "Task:\nGoal: craft it." in asked
    assert "Log:\nAction: a\nObservation: seen 1\n\nCurrent step:\nAction: b\n" in asked
    assert "seen 3" not in asked
    own = question(tree, tree.steps(3), 0, instruction="Is it right?")
    assert own.startswith("Is it right?\n\nTask:")
    assert own.endswith("Judgement: <verdict>")


class Small(ScriptedJudge):
    """A judge whose context holds so many earlier steps."""

    def __init__(self, verdicts: Any, earlier: int = 1) -> None:
        super().__init__(verdicts)
        self.earlier = earlier

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        if messages[-1]["content"].count("Observation: seen") > self.earlier + 1:
            raise ContextOverflowError("too long")
        return await super().reply(messages, seed, affinity)


def test_a_question_that_is_too_long_loses_its_oldest_steps(tmp_path: Path) -> None:
    policy = Small({"c": BAD})
    found, judge = cuts(policy, tmp_path, [(3, 1, "p")])
    assert found == [Cut(3, flagged=3)]
    assert [row["left_out"] for row in judge.used] == [0, 0, 1]
    assert "(1 earlier steps are left out)" in policy.questions[-1]


def test_a_quarter_of_the_rest_is_left_out_at_a_time(tmp_path: Path) -> None:
    chain = [node(0, None), *(node(n, n - 1, action=f"a{n}", leaf=n == 13) for n in range(1, 14))]
    policy = Small({"a13": BAD}, earlier=7)
    tree = tree_of(grown(chain, "task"))
    found, judge = cuts(policy, tmp_path, [(13, 0, "p")], tree=tree)
    assert found == [Cut(13, flagged=13)]
    # Of twelve earlier steps three, and then two of nine.
    assert judge.used[-1]["left_out"] == 5


class Overfull(ScriptedJudge):
    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        raise ContextOverflowError("too long")


def test_a_question_that_never_fits_is_unparsed(tmp_path: Path) -> None:
    found, judge = cuts(Overfull({}), tmp_path, [(3, 1, "p")], unparsed="pair")
    assert found == [Cut(None, without="unparsed")]
    assert judge.used[0]["stop"] == "overflow"


class Failing(ScriptedJudge):
    """Fails so many times before it answers."""

    def __init__(self, times: int) -> None:
        super().__init__({})
        self.times = times

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        self.times -= 1
        if self.times >= 0:
            raise InfrastructureError("busy")
        return await super().reply(messages, seed, affinity)


def test_a_failing_server_is_asked_again_and_a_dead_one_is_not(tmp_path: Path) -> None:
    found, _ = cuts(Failing(1), tmp_path, [(3, 1, "p")])
    assert found == [Cut(3)]

    async def dead() -> str | None:
        return "the policy server is gone"

    with pytest.raises(ServerLostError, match="is gone"):
        cuts(Failing(9), tmp_path / "other", [(3, 1, "p")], lost=dead)
