"""Job: a program of the user's own plays the episodes.
`python -m agentc_backends.agents.command.job_command JOB.json`.

Leases: `policy` and `environment`. Finished episodes lie in `work/episodes.jsonl`, so a rerun after
a kill plays only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys

from agentc.program.job import Job
from agentc_backends.agents.command.play import AgentProgram, Door, ProgramStage, play
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import Attempt, planned_attempts, read_rules, split_tasks
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.runner import ON_OVERFLOW, Row
from agentc_backends.agents.common.settings import PlannedEpisodes
from agentc_backends.agents.recording.episodes import play_recorded
from agentc_backends.agents.recording.recorder import open_recorder


async def roll_out(job: Job) -> None:
    """Play the episodes of the job and write trajectories.jsonl and refused.jsonl."""
    config, concurrency = job.config, job.placement["concurrency"]
    decode, tells, door = config["decode"], config["tells"], Door()
    async with (
        connect(job.leases, decode, concurrency) as servers,
        open_recorder(
            job.leases["policy"], decode, concurrency=concurrency, tells=tells, routes=door.routes()
        ) as recorder,
    ):
        door.recorder = recorder
        meta = await servers.world.meta()
        rules = read_rules(config, meta)
        policy = servers.policy
        assert policy is not None
        stage = ProgramStage(
            rules=rules,
            max_turns=config["max_turns"],
            on_overflow=config["on_overflow"],
            params=config["params"],
            world=servers.world,
            policy=policy,
            recorder=recorder,
            door=door,
            program=_program(job),
            folder=job.work / "running",
            model=job.leases["policy"]["model"],
        )
        planned = config.read_as(PlannedEpisodes)
        attempts = planned_attempts(split_tasks(meta, rules.split, planned.limit), planned)
        keeps_all = config["keeps_all"]
        config.assert_all_read()
        if tells:
            await compare_with_trainer(job, policy)

        async def play_attempt(attempt: Attempt) -> Row:
            return await play(stage, attempt)

        await play_recorded(
            job, rules, attempts, play=play_attempt, lost=servers.lost, keeps_all=keeps_all
        )


def _program(job: Job) -> AgentProgram:
    config = job.config
    secret = {
        variable
        for lease in job.leases.values()
        for variable in (lease.get("secrets") or {}).values()
    }
    return AgentProgram(
        words=config["words"],
        python=config["python"],
        files=config["files"],
        hidden=frozenset(secret),
        longest_s=job.placement["episode_s"],
    )


if __name__ == "__main__":
    sys.exit(run_job("rollout", roll_out, on_overflow=ON_OVERFLOW))
