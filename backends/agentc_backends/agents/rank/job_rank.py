"""Job: advantages. `python -m agentc_backends.agents.rank.job_rank JOB.json`.

Lease: `policy`, which serves the critic. What the reference made of the same candidates is an
input, or what the policy recorded when it drew them. Finished turns lie in `work/scores.jsonl`. Of
hidden texts nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from agentc.runtime.program import Job, read_rows, write_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.rank.advantage import recorded, rewarded_turn
from agentc_backends.agents.rank.scoring import score_turns
from agentc_backends.agents.rank.shown import prompts, read_critic


async def rank(job: Job) -> None:
    """Score every candidate with the critic and write turns.jsonl."""
    span = job.config["span"]
    job.config.assert_all_read()
    turns = list(read_rows(job.input("candidates") / "candidates.jsonl"))
    critic = read_critic(job.input("critic"))
    hidden = job.inputs("privileged")
    if critic.template is not None and not hidden:
        raise FatalError(
            "the critic was trained behind hidden texts, and the stage has none: give it the "
            "`privileged` that the critic had"
        )
    shown = prompts("privileged" if hidden else "history", critic.template, hidden)
    scores = await score_turns(job, turns, shown, span)
    references = _references(job, turns)
    rewarded = [
        rewarded_turn(turn, ours, theirs, critic.normalisation)
        for turn, ours, theirs in zip(turns, scores, references, strict=True)
    ]
    ranked = [turn for turn in rewarded if turn["candidates"]]
    if not ranked:
        raise FatalError(
            f"not one of {len(turns)} turns could be ranked: their prompts are longer than the "
            "window of a server, or nothing was sampled"
        )
    job.facts(
        ranked=len(ranked),
        spread_mean=fmean(turn["spread"] for turn in ranked),
        flat=sum(turn["spread"] == 0 for turn in ranked),
        rank_of_taken=_rank_of_taken(ranked),
    )
    write_rows(job.out / "turns.jsonl", rewarded)


def _references(job: Job, turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference's scores of each turn: those that its job made, or those recorded."""
    folders = job.inputs("scores")
    if not folders:
        return [recorded(turn) for turn in turns]
    found = {row["id"]: row for row in read_rows(folders[0] / "scores.jsonl")}
    return [found[turn["id"]] for turn in turns]


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


if __name__ == "__main__":
    sys.exit(run_job("rank", rank))
