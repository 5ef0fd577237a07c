"""Scores candidates of turns: the log-probabilities that a served model gives their tokens.

Token ids go to the server, never a text that would be taken apart anew. Neighbours: `scoring.py`,
which works through all turns; `advantage.py`, which compares two models' scores.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompt import Message
from agentc_backends.agents.common.shown import CandidatePrompt
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError

Row: TypeAlias = dict[str, Any]
Span: TypeAlias = Literal["reply", "published"]


class Scorer(Protocol):
    """A served model that says what it thinks of given tokens (`connect.ChatPolicy`)."""

    async def tokenize(self, messages: Sequence[Message], *, opened: bool = True) -> list[int]: ...

    async def spell(self, text: str) -> list[int]: ...

    async def score(self, ids: Sequence[int], affinity: str) -> list[float | None]: ...


async def turn_scores(turn: Row, prompt: CandidatePrompt, span: Span, scorer: Scorer) -> Row:
    """The row of one turn, whose `prompt` the scorer is shown: `{"sum", "n"}` of each candidate.
    Raises InfrastructureError, FatalError."""
    affinity = turn["id"]
    asked: list[asyncio.Future[Row]] = []
    try:
        before = await scorer.tokenize(prompt.messages)
        header = 0 if span == "reply" else await _header(prompt.messages, before, scorer)
        if prompt.opening:
            before = [*await scorer.spell(prompt.opening), *before]
        asked = [
            asyncio.ensure_future(_score(each, before, header, span, scorer, affinity))
            for each in turn["candidates"]
        ]
        scores = await asyncio.gather(*asked)
    except ContextOverflowError:
        return score_row(turn, "overflow")
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    tokens = len(before) * len(scores) + sum(len(each["tokens"]) for each in turn["candidates"])
    return {**score_row(turn, "scored"), "scores": list(scores), "tokens": tokens}


def score_row(turn: Row, end: str, error: InfrastructureError | None = None) -> Row:
    """The row of a turn before it has scores."""
    failed = {} if error is None else {"error": str(error)}
    named = {"id": turn["id"], "task_id": turn["task_id"], "end": end}
    return {**named, "scores": [], "tokens": 0, **failed}


async def _header(prompt: Sequence[Message], before: Sequence[int], scorer: Scorer) -> int:
    """How many tokens at the end of a prompt open the agent's message."""
    closed = await scorer.tokenize(prompt, opened=False)
    if list(before[: len(closed)]) != closed:
        raise FatalError(
            "the chat template writes a prompt in another way when a reply is to follow: "
            "`span: published` has no header that it could take in"
        )
    return len(before) - len(closed)


async def _score(
    candidate: Row,
    before: Sequence[int],
    header: int,
    span: Span,
    scorer: Scorer,
    affinity: str,
) -> Row:
    ids = [*before, *candidate["tokens"]]
    scores = await scorer.score(ids, affinity)
    if len(scores) != len(ids):
        raise FatalError(f"the server scored {len(scores)} tokens where it was given {len(ids)}")
    end = len(ids)
    # One that a limit or a stop text ended has no token of its end.
    if span == "published" and not (candidate.get("cut") or candidate.get("stopped_by")):
        end -= 1
    taken = scores[len(before) - header : end]
    # Only the first token of all has no score, and a prompt comes before.
    found = [0.0 if each is None else each for each in taken]
    return {"sum": math.fsum(found), "n": len(found)}
