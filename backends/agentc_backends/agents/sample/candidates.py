"""The candidates of one turn: as many requests, each with a seed of its own, so that they do not
depend on what else is asked, in which order, or after how many interruptions."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Protocol, TypeAlias

from agentc.runtime.contracts.turn_contracts import candidate_seed
from agentc_backends.agents.common.episode import Reply
from agentc_backends.agents.common.prompt import Message
from agentc_backends.agents.sample.draw import SampleRules, Turn
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError

Row: TypeAlias = dict[str, Any]


class TokenPolicy(Protocol):
    """Answers a conversation and tells the tokens of the answer."""

    async def reply_with_tokens(
        self, messages: tuple[Message, ...], seed: int, affinity: str
    ) -> Reply: ...


async def candidates_of(turn: Turn, rules: SampleRules, policy: TokenPolicy) -> Row:
    """The row of a turn. Raises InfrastructureError; ContextOverflowError where the stage is to
    fail at a prompt that is too long."""
    seeds = [candidate_seed(rules.seed, turn.id, number) for number in range(rules.candidates)]
    # Those of one episode go to one replica, which still knows the prompt.
    affinity = f"{turn.task_id}#{turn.given or 0}.{turn.attempt}"
    asked = [
        asyncio.ensure_future(policy.reply_with_tokens(turn.prompt, seed, affinity))
        for seed in seeds
    ]
    try:
        replies = await asyncio.gather(*asked)
    except ContextOverflowError:
        if rules.on_overflow == "error":
            raise
        return turn_row(turn, "overflow")
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    row = turn_row(turn, "sampled")
    row["candidates"] = [
        _candidate(reply, seed) for reply, seed in zip(replies, seeds, strict=True)
    ]
    row["candidates_unique"] = len({reply.text for reply in replies})
    row["tokens"] = {
        "prompt": sum(reply.prompt_tokens for reply in replies),
        "completion": sum(reply.completion_tokens for reply in replies),
    }
    return row


def turn_row(turn: Turn, end: str, error: InfrastructureError | None = None) -> Row:
    """The row of a turn before it has candidates."""
    return {
        "id": turn.id,
        "task_id": turn.task_id,
        "attempt": turn.attempt,
        "turn": turn.number,
        **({} if turn.given is None else {"input": turn.given}),
        "split": turn.split,
        "prompt": list(turn.prompt),
        "prompt_length": turn.prompt_length,
        "taken": turn.taken,
        "reward": turn.reward,
        "candidates": [],
        "candidates_unique": 0,
        "tokens": {"prompt": 0, "completion": 0},
        "end": end,
        **({} if error is None else {"error": str(error)}),
    }


def _candidate(reply: Reply, seed: int) -> Row:
    # Exactly rounded, so that it does not matter how a server batches its sums.
    return {
        "text": reply.text,
        "tokens": list(reply.tokens),
        "logprob_sum": math.fsum(reply.logprobs),
        "logprob_n": len(reply.logprobs),
        "stop": reply.stop,
        "seed": seed,
        **({"cut": True} if reply.stop == "length" else {}),
        **({} if reply.stopped_by is None else {"stopped_by": reply.stopped_by}),
    }
