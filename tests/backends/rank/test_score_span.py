"""Which tokens of a reply count, by what ended it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agentc_backends.agents.common.score import turn_scores


class Scorer:
    """Two tokens of history, two that open a reply; a token's score is its number, below 0."""

    async def tokenize(self, messages: Sequence[Any], *, opened: bool = True) -> list[int]:
        return [1, 2, 3, 4] if opened else [1, 2]

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
        row = asyncio.run(turn_scores(turn, [], span, Scorer()))  # type: ignore[arg-type]
        assert row["scores"][0]["sum"] == -wanted
