"""Job: advantages. `python -m agentc_backends.agents.rank.job_rank JOB.json`.

Lease: `policy`, which serves the critic. What the reference made of the same candidates is an
input, or what the policy recorded when it drew them. Finished turns lie in `work/scores.jsonl`. Of
hidden texts nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from agentc.program.artifact_files import CANDIDATES_FILE, SCORES_FILE
from agentc.program.job import Job, iterate_rows
from agentc_backends.agents.common.critic_scores import Row, critic_prompts, read_critic
from agentc_backends.agents.common.journal import stored_rows
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.rank.scoring import score_turns
from agentc_backends.agents.rank.turns import rewarded_turn, sampler_scores, write_ranked_turns


async def rank(job: Job) -> None:
    """Score every candidate with the critic and write turns.jsonl."""
    span = job.config["span"]
    job.config.assert_all_read()
    turns = stored_rows(job.input("candidates") / CANDIDATES_FILE)
    critic = read_critic(job.input("critic"))
    shown = critic_prompts(critic, job.inputs("privileged"))
    scores = await score_turns(job, turns, shown, span)
    reference = _reference(job)
    write_ranked_turns(
        job,
        (
            rewarded_turn(turn, ours, reference(turn), critic.normalisation)
            for turn, ours in zip(turns, scores, strict=True)
        ),
    )


def _reference(job: Job) -> Callable[[Row], Row]:
    """The reference's scores of a turn: those that its job made, or those recorded."""
    folders = job.inputs("scores")
    if not folders:
        return sampler_scores
    found = {row["id"]: row for row in iterate_rows(folders[0] / SCORES_FILE)}
    return lambda turn: found[turn["id"]]


if __name__ == "__main__":
    sys.exit(run_job("rank", rank))
