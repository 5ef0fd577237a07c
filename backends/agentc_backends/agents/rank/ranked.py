"""What both rank programs end with: turns.jsonl, and the facts that tell whether the critic says
anything. Neighbours: `job_rank.py`, `job_value_head.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import Any

from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.failures import FatalError


def finish(job: Job, rewarded: Iterable[dict[str, Any]]) -> None:
    """Write turns.jsonl, one row after the other, and state its facts. Raises FatalError where no
    turn was ranked."""
    spreads: list[float] = []
    places: list[float] = []
    rows = 0

    def noted() -> Iterator[dict[str, Any]]:
        nonlocal rows
        for turn in rewarded:
            rows += 1
            if turn["candidates"]:
                spreads.append(turn["spread"])
                places.extend(_rank_of_taken(turn))
            yield turn

    write_rows(job.out / "turns.jsonl", noted())
    if not spreads:
        raise FatalError(
            f"not one of {rows} turns could be ranked: their prompts are longer than the "
            "critic's window, or nothing was sampled"
        )
    job.facts(
        ranked=len(spreads),
        spread_mean=fmean(spreads),
        flat=spreads.count(0),
        rank_of_taken=round(fmean(places), 4) if places else None,
    )


def _rank_of_taken(turn: dict[str, Any]) -> Iterator[float]:
    """Where the critic puts what the episode went on with, among candidates of that text and the
    others: 0 is the worst, 1 the best; nothing where the episode's reply was not drawn again."""
    own = [c["advantage"] for c in turn["candidates"] if c["text"] == turn["taken"]]
    others = [c["advantage"] for c in turn["candidates"] if c["text"] != turn["taken"]]
    if own and others:
        yield fmean((own[0] > other) + (own[0] == other) / 2 for other in others)
