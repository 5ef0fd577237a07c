"""Job: a program of the user's own plays the episodes.
`python -m agentc_backends.agents.command.job_command JOB.json`.

Leases: `policy` and `environment`. Finished episodes lie in `work/episodes.jsonl`, so a rerun after
a kill plays only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys

from agentc.runtime.program import Job
from agentc_backends.agents.client.errors import InfrastructureError
from agentc_backends.agents.command.agent_process import AgentProgram
from agentc_backends.agents.command.door import Door
from agentc_backends.agents.command.play import ProgramStage, play
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import Attempt, EpisodeRecord
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.rest import WorkProgress, play_rest
from agentc_backends.agents.common.runner import Row
from agentc_backends.agents.common.tasks import attempts_at, read_rules, tasks_of
from agentc_backends.agents.recorded.published import publish, tell
from agentc_backends.agents.recorded.recorder import recording

_ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `end` would end the episode with its "
    "reward so far."
)


async def roll_out(job: Job) -> None:
    """Play the episodes of the job and write trajectories.jsonl and refused.jsonl."""
    config, concurrency = job.config, job.placement["concurrency"]
    decode, tells, door = config["decode"], config["tells"], Door()
    async with (
        connect(job.leases, decode, concurrency) as servers,
        recording(
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
        attempts = attempts_at(
            tasks_of(meta, rules.split, config["limit"]),
            config["attempts"],
            seed=config["seed"],
            prompt_seed=config["prompt_seed"],
            prompt_per_attempt=config["prompt_per_attempt"],
        )
        keeps_all = config["keeps_all"]
        config.assert_all_read()
        if tells:
            await compare_with_trainer(job, policy)

        async def play_one(attempt: Attempt) -> Row:
            return await play(stage, attempt)

        def broken(attempt: Attempt, error: InfrastructureError) -> Row:
            return EpisodeRecord(rules, attempt, "policy").row("error", str(error))

        progress = WorkProgress(
            job=job, total=len(attempts), noun="episodes", speed="tokens_per_s", digits=1
        )
        with Journal(job.work / "episodes.jsonl") as journal:
            rows = await play_rest(
                attempts,
                journal,
                progress,
                key=lambda attempt: (attempt.task_id, attempt.number),
                play=play_one,
                reward=lambda row: row["reward"],
                made=lambda row: row["tokens"]["completion"],
                lost=servers.lost,
                broken=broken,
                name=lambda attempt: attempt.id,
            )
            tell(job, rows, progress)
            publish(job, rows, keeps_all=keeps_all)


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
    sys.exit(run_job("rollout", roll_out, on_overflow=_ON_OVERFLOW))
