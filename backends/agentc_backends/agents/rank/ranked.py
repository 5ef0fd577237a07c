"""What both rank programs end with: turns.jsonl, and the facts that tell whether the critic says
anything. Neighbours: `job_rank.py`, `job_value_head.py`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from agentc.runtime.program import Job, write_rows
from agentc_backends.agents.common.failures import FatalError


def finish(job: Job, rewarded: list[dict[str, Any]]) -> None:
    """Write turns.jsonl and state its facts. Raises FatalError where no turn was ranked."""
    ranked = [turn for turn in rewarded if turn["candidates"]]
    if not ranked:
        raise FatalError(
            f"not one of {len(rewarded)} turns could be ranked: their prompts are longer than the "
            "critic's window, or nothing was sampled"
        )
    job.facts(
        ranked=len(ranked),
        spread_mean=fmean(turn["spread"] for turn in ranked),
        flat=sum(turn["spread"] == 0 for turn in ranked),
        rank_of_taken=_rank_of_taken(ranked),
    )
    write_rows(job.out / "turns.jsonl", rewarded)


def _rank_of_taken(turns: Sequence[dict[str, Any]]) -> float | None:
    """Where the critic puts what the episode went on with, among candidates of that text and the
    others: 0 is the worst, 1 the best; None where no episode's reply was drawn again."""
    places: list[float] = []
    for turn in turns:
        own = [c["advantage"] for c in turn["candidates"] if c["text"] == turn["taken"]]
        others = [c["advantage"] for c in turn["candidates"] if c["text"] != turn["taken"]]
        if own and others:
            places.append(fmean((own[0] > other) + (own[0] == other) / 2 for other in others))
    return round(fmean(places), 4) if places else None
