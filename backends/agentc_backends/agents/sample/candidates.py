"""Which turns of which trajectories get candidates, and the candidates of one turn: as many
requests, each with a seed of its own, so that they do not depend on what else is requested, in
which order, or after how many interruptions."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from agentc.kinds.search import DrawnTurns
from agentc.runtime.contracts.turn_contracts import candidate_seed, turn_id
from agentc_backends.agents.common.episode import Reply, TokenPolicy
from agentc_backends.agents.common.prompts import Message, model_messages
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn of an episode: what the policy was shown (`prompt`, of which the first `prompt_length`
    messages open the episode), what it replied (`taken`), and the episode's `reward`. `number`
    counts from 0; `given` is the number of the input, where there are several."""

    task_id: str
    attempt: int
    number: int
    given: int | None
    split: str | None
    prompt: tuple[Message, ...]
    prompt_length: int
    taken: str
    reward: float | None

    @property
    def id(self) -> str:
        return turn_id(self.task_id, self.attempt, self.number, self.given)


@dataclass(slots=True)
class DrawCounts:
    """How many trajectories were taken, and what was left out, by reason."""

    trajectories: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def draw_turns(inputs: Sequence[Sequence[Row]], rules: DrawnTurns) -> tuple[list[Turn], DrawCounts]:
    """The turns of the stage in the order of inputs, rows and turns. Episodes that ended in an
    infrastructure error are no trajectories."""
    counts = DrawCounts()
    # No row is kept that is not taken.
    whole = [
        _DrawnRow(number, place, row["id"], row["attempt"])
        for number, rows in enumerate(inputs)
        for place, row in enumerate(rows)
        if row["end"] != "error"
    ]
    counts.left_out["infrastructure_error"] = sum(map(len, inputs)) - len(whole)
    kept = _part(whole, rules)
    counts.left_out["not_drawn"] = len(whole) - len(kept)
    counts.trajectories = len(kept)
    several = len(inputs) > 1
    turns = [
        turn
        for each in kept
        for turn in _turns(
            each.given if several else None, inputs[each.given][each.place], rules.turns, counts
        )
    ]
    return turns, counts


class _DrawnRow(NamedTuple):
    """Where a trajectory stands: the number of its input, that of its row; and what it is."""

    given: int
    place: int
    id: str
    attempt: int


def _part(rows: Sequence[_DrawnRow], rules: DrawnTurns) -> list[_DrawnRow]:
    """The share that is taken, in the order of the rows."""
    # int() as the released script has it; the sum keeps 0.7 of 10 at 7.
    most = int(len(rows) * rules.fraction + 1e-9)
    if rules.limit is not None:
        most = min(most, rules.limit)

    def by_hash(place: int) -> tuple[Any, ...]:
        text = f"taken/1/{rules.seed}/{rows[place].given}/{rows[place].id}"
        return (hashlib.sha256(text.encode()).digest(),)

    def by_attempt(place: int) -> tuple[Any, ...]:
        return (rows[place].given, rows[place].attempt, place)

    order = sorted(range(len(rows)), key=by_hash if rules.take == "hash" else by_attempt)
    return [rows[place] for place in sorted(order[:most])]


def _turns(given: int | None, row: Row, most: int | None, counts: DrawCounts) -> list[Turn]:
    found: list[Turn] = []
    messages, length = row["messages"], row["prompt_length"]
    places = [p for p in range(length, len(messages)) if messages[p]["role"] == "assistant"]
    for number, place in enumerate(places):
        if messages[place].get("loss") is False:
            counts.left_out["turn_of_a_prefix"] += 1
            continue
        if most is not None and number >= most:
            counts.left_out["later_turn"] += 1
            continue
        found.append(
            Turn(
                task_id=row["task_id"],
                attempt=row["attempt"],
                number=number,
                given=given,
                split=row.get("split"),
                prompt=tuple(model_messages(messages[:place])),
                prompt_length=length,
                taken=messages[place].get("raw", messages[place]["content"]),
                reward=row["reward"],
            )
        )
    return found


async def draw_candidates(turn: Turn, rules: DrawnTurns, policy: TokenPolicy) -> dict[str, Any]:
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


def turn_row(turn: Turn, end: str, error: InfrastructureError | None = None) -> dict[str, Any]:
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


def _candidate(reply: Reply, seed: int) -> dict[str, Any]:
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
