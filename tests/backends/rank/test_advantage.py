"""Advantages worked out by hand, and the halves that they put candidates in."""

from __future__ import annotations

from typing import Any

import pytest

from agentc_backends.agents.common.critic_scores import advantage
from agentc_backends.agents.rank.turns import rewarded_turn, sampler_scores, valued_turn
from agentc_backends.data.ranked.job_ranked_pairs import ascending, halves

# (critic | reference) log-probabilities of the tokens of four candidates of one turn.
TOKENS = {
    "a": ((-1.0, -2.0, -0.5), (-1.5, -2.5, -0.5)),
    "b": ((-0.2, -0.2), (-0.5, -0.25)),
    "c": ((-3.0,), (-2.0,)),
    "d": ((-0.7, -0.1, -0.4, -0.8), (-0.9, -0.5, -0.4, -0.6)),
}


def scored(values: tuple[float, ...]) -> dict[str, Any]:
    return {"sum": sum(values), "n": len(values)}


def advantages(normalisation: Any) -> dict[str, float]:
    return {
        name: advantage(scored(ours), scored(theirs), normalisation)
        for name, (ours, theirs) in TOKENS.items()
    }


@pytest.mark.parametrize("normalisation", ["turn", "trajectory"])
def test_means_are_compared(normalisation: str) -> None:
    found = advantages(normalisation)
    assert found == pytest.approx({"a": 1 / 3, "b": 0.175, "c": -1.0, "d": 0.1}, abs=1e-6)
    worse, better = halves(ascending(list(found.values())))
    assert ({"abcd"[i] for i in worse}, {"abcd"[i] for i in better}) == ({"d", "c"}, {"a", "b"})


def test_sums_rank_otherwise_and_prefer_the_longer_one() -> None:
    found = advantages("none")
    assert found == pytest.approx({"a": 1.0, "b": 0.35, "c": -1.0, "d": 0.4}, abs=1e-6)
    _, better = halves(ascending(list(found.values())))
    assert {"abcd"[i] for i in better} == {"a", "d"}


def turn() -> dict[str, Any]:
    candidates = [
        {"text": name, "logprob_sum": sum(theirs), "logprob_n": len(theirs)}
        for name, (_, theirs) in TOKENS.items()
    ]
    return {"id": "t#0@0", "candidates": candidates, "candidates_unique": 4, "end": "sampled"}


def test_what_the_sampler_recorded_can_be_the_reference() -> None:
    critic = {"end": "scored", "scores": [scored(ours) for ours, _ in TOKENS.values()]}
    found = rewarded_turn(turn(), critic, sampler_scores(turn()), "turn")
    assert [c["advantage"] for c in found["candidates"]] == pytest.approx([1 / 3, 0.175, -1, 0.1])
    assert found["spread"] == pytest.approx(4 / 3)
    assert found["candidates"][1]["reference"] == {"sum": -0.75, "n": 2}


@pytest.mark.parametrize("lost", ["critic", "reference"])
def test_a_turn_that_one_model_could_not_score_has_no_candidates(lost: str) -> None:
    rows = {"critic": sampler_scores(turn()), "reference": sampler_scores(turn())}
    rows[lost] = {"end": "overflow", "scores": []}
    found = rewarded_turn(turn(), rows["critic"], rows["reference"], "turn")
    assert (found["candidates"], found["candidates_unique"], found["end"]) == ([], 0, "overflow")
    assert found["spread"] == 0


def test_a_head_s_values_are_the_advantages() -> None:
    values = {"end": "scored", "values": [0.5, -2.0, 3.0, 0.0]}
    found = valued_turn(turn(), values)
    assert [c["advantage"] for c in found["candidates"]] == [0.5, -2.0, 3.0, 0.0]
    assert found["candidates"][1]["critic"] == {"value": -2.0}
    assert found["spread"] == 5.0
    lost = valued_turn(turn(), {"end": "overflow", "values": []})
    assert (lost["candidates"], lost["spread"], lost["end"]) == ([], 0.0, "overflow")
