"""Job: what the reference makes of candidates.
`python -m agentc_backends.agents.rank.job_reference JOB.json`.

Lease: `policy`, which serves the reference. Finished turns lie in `work/scores.jsonl`.
`job_rank.py` takes these scores away from the critic's.
"""

from __future__ import annotations

import sys

from agentc.program.artifact_files import CANDIDATES_FILE, SCORES_FILE
from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.critic_scores import candidate_prompts, read_critic
from agentc_backends.agents.common.journal import stored_rows
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.rank.scoring import score_turns


async def score(job: Job) -> None:
    """Score every candidate and write scores.jsonl."""
    sees, span = job.config["context"], job.config["span"]
    job.config.assert_all_read()
    turns = stored_rows(job.input("candidates") / CANDIDATES_FILE)
    critic = read_critic(job.input("critic")) if sees == "privileged" else None
    shown = candidate_prompts(sees, critic, job.inputs("privileged"))
    rows = await score_turns(job, turns, shown, span)
    write_rows(
        job.out / SCORES_FILE,
        [{name: value for name, value in row.items() if name != "error"} for row in rows],
    )


if __name__ == "__main__":
    sys.exit(run_job("rank", score))
