"""Workloads of stages on single turns: candidates that are drawn, and pairs that are made of them.

Neighbour: `workload.py`, which asks; formulas in docs/cost.md.
"""

from __future__ import annotations

from agentc.cost.amounts import Guesses, Rows, Workload, row_bytes
from agentc.cost.past import Traits
from agentc.cost.priors import prior
from agentc.cost.quantity import Quantity, sum_in_step, total
from agentc.cost.subject import JobProfile

_TOKEN_ID_BYTES = 6.0
"""Of a token's id in a row, with its comma."""


def forecast_candidates(guesses: Guesses, subject: JobProfile) -> Workload:
    """A reply for each candidate of each turn that is taken; a turn's context is about half of its
    episode."""
    episodes = guesses.rows_of(subject, "rollouts")
    count = sum_in_step(rows.count for rows in episodes).times(subject.number("fraction", 1))
    limit = subject.setting("limit")
    if isinstance(limit, int) and limit <= count.median:
        count = Quantity(float(limit))
    turns = episodes[0].turns if episodes else Quantity(5, 0.7)
    first = subject.setting("turns")
    if isinstance(first, int) and first < turns.median:
        turns = Quantity(float(first))
    tokens = episodes[0].tokens if episodes else prior("prompt_tokens")
    label = episodes[0].label if episodes else ""
    model = guesses.model_of(subject, "policy")
    each = subject.number("candidates", 16)
    taken = count.times(turns)
    replies = taken.times(each)
    longest = subject.number("decode.max_tokens", 1024)
    usual = prior("reply_tokens")
    reply = Quantity(min(usual.median, longest), usual.spread)
    traits: Traits = {"data": label, "max_tokens": longest}
    reply = guesses.settle(subject, "reply", subject.backend, reply, traits)
    context = guesses.settle(subject, "context", subject.backend, tokens.times(0.5), traits)
    drawn = total([context, reply.times(each)])
    output = Rows(count=taken, turns=Quantity(each), tokens=drawn, label=f"candidates of {label}")
    disk = taken.times(row_bytes(drawn)).widened(0.2)
    return Workload(
        rows=taken,
        turns=replies,
        replied=replies.times(reply),
        context=context,
        tokens=replies.times(total([context, reply])),
        model=model,
        output=output,
        disk=total([disk, replies.times(reply).times(_TOKEN_ID_BYTES)]),
    )


def forecast_scores(guesses: Guesses, subject: JobProfile) -> Workload:
    """Every candidate of every turn goes through the model once, behind its prompt."""
    turns = guesses.rows_of(subject, "candidates")
    count = sum_in_step(rows.count for rows in turns)
    each = turns[0].turns if turns else Quantity(16, 0.3)
    drawn = turns[0].tokens if turns else prior("prompt_tokens")
    label = turns[0].label if turns else ""
    role = "reference" if "reference" in subject.inputs else "critic"
    reply = prior("reply_tokens")
    prompt = Quantity(max(1.0, drawn.median - each.median * reply.median), drawn.spread)
    scores = count.times(each)
    row = guesses.settle(
        subject, "scored", subject.backend, total([prompt, reply]), {"data": label}
    )
    output = Rows(count=count, turns=each, tokens=drawn, label=label)
    return Workload(
        rows=count,
        turns=scores,
        context=row,
        tokens=scores.times(row),
        model=guesses.model_of(subject, role),
        output=output,
        disk=scores.times(2 * prior("row_bytes").median).widened(1.0),
    )


def forecast_ranked_pairs(guesses: Guesses, subject: JobProfile) -> Workload:
    """Pairs of turns: so many of each, less those that are drawn twice."""
    turns = guesses.rows_of(subject, "turns")
    count = sum_in_step(rows.count for rows in turns)
    each = 1.0 if subject.setting("draw") == "best_worst" else subject.number("pairs_per_turn", 4)
    label = turns[0].label if turns else ""
    kept = Quantity(0.8, 0.3)
    share = guesses.settle(subject, "kept_draws", subject.backend, kept, {"data": label})
    pairs = count.times(each).times(share)
    tokens = turns[0].tokens if turns else prior("prompt_tokens")
    candidates = turns[0].turns if turns else Quantity(16, 0.0)
    reply = prior("reply_tokens")
    # Of a turn's tokens all but those of its candidates are the prompt, which both sides have.
    context = max(0.0, tokens.median - candidates.median * reply.median)
    both = total([Quantity(2 * context, tokens.spread), reply.times(2)])
    output = Rows(count=pairs, turns=Quantity(2), tokens=both, label=f"pairs of {label}")
    return Workload(rows=count, output=output, disk=pairs.times(row_bytes(both)))
