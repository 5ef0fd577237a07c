"""Job: advantages. `python -m agentc_backends.agents.rank.job_rank JOB.json`.

Lease: `policy`, which serves the critic. What the reference made of the same candidates is an
input, or what the policy recorded when it drew them. Finished turns lie in `work/scores.jsonl`. Of
hidden texts nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from agentc.runtime.program import Job, read_rows
from agentc_backends.agents.common.advantage import recorded, rewarded_turn
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.shown import read_critic, shown_to_critic
from agentc_backends.agents.rank.ranked import finish
from agentc_backends.agents.rank.scoring import score_turns


async def rank(job: Job) -> None:
    """Score every candidate with the critic and write turns.jsonl."""
    span = job.config["span"]
    job.config.assert_all_read()
    turns = list(read_rows(job.input("candidates") / "candidates.jsonl"))
    critic = read_critic(job.input("critic"))
    shown = shown_to_critic(critic, job.inputs("privileged"))
    scores = await score_turns(job, turns, shown, span)
    references = _references(job, turns)
    rewarded = [
        rewarded_turn(turn, ours, theirs, critic.normalisation)
        for turn, ours, theirs in zip(turns, scores, references, strict=True)
    ]
    finish(job, rewarded)


def _references(job: Job, turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference's scores of each turn: those that its job made, or those recorded."""
    folders = job.inputs("scores")
    if not folders:
        return [recorded(turn) for turn in turns]
    found = {row["id"]: row for row in read_rows(folders[0] / "scores.jsonl")}
    return [found[turn["id"]] for turn in turns]


if __name__ == "__main__":
    sys.exit(run_job("rank", rank))
