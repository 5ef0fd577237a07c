"""Which tokens of a reply count, by what ended it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agentc_backends.agents.common.critic_scores import CandidatePrompt, score_turn
from agentc_backends.agents.rank.turns import rewarded_turn, sampler_scores


class Scorer:
    """Two tokens of history, two that open a reply; a token's score is its number, below 0."""

    async def tokenize(self, messages: Sequence[Any], *, opened: bool = True) -> list[int]:
        return [1, 2, 3, 4] if opened else [1, 2]

    async def spell(self, text: str) -> list[int]:
        return [7] * len(text)

    async def score(self, ids: Sequence[int], affinity: str) -> list[float | None]:
        return [None, *(-float(each) for each in ids[1:])]


@pytest.mark.parametrize(
    ("ended", "reply", "published"),
    [({}, 120, 28), ({"cut": True}, 120, 127), ({"stopped_by": "\\nObs"}, 120, 127)],
)
def test_only_an_end_of_the_models_own_is_left_out(
    ended: dict[str, Any], reply: int, published: int
) -> None:
    turn = {"id": "t#0@0", "task_id": "t", "candidates": [{"tokens": [10, 11, 99], **ended}]}
    for span, wanted in (("reply", reply), ("published", published)):
        row = asyncio.run(score_turn(turn, CandidatePrompt([]), span, Scorer()))  # type: ignore[arg-type]
        assert row["scores"][0]["sum"] == -wanted


def test_a_text_before_the_first_token_shifts_no_span() -> None:
    turn = {"id": "t#0@0", "task_id": "t", "candidates": [{"tokens": [10, 11, 99]}]}
    for span in ("reply", "published"):
        sums = []
        for opening in ("", "text"):
            row = asyncio.run(score_turn(turn, CandidatePrompt([], opening), span, Scorer()))  # type: ignore[arg-type]
            sums.append(row["scores"][0])
        assert sums[0] == sums[1]


class Released(Scorer):
    """Oracle O5: four tokens that open a reply at -0.01 each, then C at -1, D at -2, an end."""

    async def tokenize(self, messages: Sequence[Any], *, opened: bool = True) -> list[int]:
        return [1, 2, 3, 4, 5] if opened else [1]

    async def score(self, ids: Sequence[int], affinity: str) -> list[float | None]:
        assert list(ids) == [1, 2, 3, 4, 5, 10, 11, 99]
        return [None, *[-0.01] * 4, -1.0, -2.0, -7.0]


@pytest.mark.parametrize(("normalisation", "advantage"), [("trajectory", 0.993333), ("none", 1.46)])
def test_the_released_ranking_is_the_critics_published_span_less_the_samplers_own_mean(
    normalisation: Any, advantage: float
) -> None:
    """The sampler's (C, D, end) are (-1.5, -2.5, -0.5)."""
    candidate = {"text": "CD", "tokens": [10, 11, 99], "logprob_sum": -4.5, "logprob_n": 3}
    turn = {"id": "t#0@0", "task_id": "t", "end": "sampled", "candidates": [candidate]}
    critic = asyncio.run(score_turn(turn, CandidatePrompt([]), "published", Released()))  # type: ignore[arg-type]
    ranked = rewarded_turn(turn, critic, sampler_scores(turn), normalisation)
    assert ranked["candidates"][0]["advantage"] == pytest.approx(advantage, abs=1e-6)
