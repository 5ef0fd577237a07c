"""Job: a taskset of verifiers is played under its own harness.
`python -m agentc_backends.agents.verifiers.job_taskset JOB.json`.

Lease: `policy`. Finished episodes lie in `work/episodes.jsonl`, so a rerun after a kill plays only
the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys

from agentc.kinds.interaction import RepeatedEpisodes
from agentc.program.job import Job
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import ChatPolicy, lost_server
from agentc_backends.agents.common.episode import Attempt, read_rules, split_tasks, task_attempts
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.runner import ON_OVERFLOW, Row
from agentc_backends.agents.recording.episodes import play_recorded
from agentc_backends.agents.recording.recorder import open_recorder
from agentc_backends.agents.verifiers.taskset import TasksetStage, open_taskset, play
from agentc_backends.agents.verifiers.uv_command import prepare_home
from agentc_backends.clients.leases import chat_client


async def play_taskset(job: Job) -> None:
    """Play the episodes of the job and write trajectories.jsonl and refused.jsonl."""
    config, concurrency = job.config, job.placement["concurrency"]
    decode, tells, lease = config["decode"], config["tells"], job.leases["policy"]
    keeps_all, turns = config["keeps_all"], config["max_turns"]
    async with (
        chat_client(lease, concurrency=concurrency) as chat,
        open_recorder(lease, decode, concurrency=concurrency, tells=tells) as recorder,
    ):
        prepare_home(job.work / "home", (lease.get("secrets") or {}).values())
        async with open_taskset(
            config["world"],
            job.work / "taskset",
            harness=config["harness"],
            turns=turns,
            longest_s=job.placement["episode_s"],
        ) as world:
            rules = read_rules(config, world.meta())
            stage = TasksetStage(
                rules=rules,
                max_turns=turns,
                on_overflow=config["on_overflow"],
                world=world,
                policy=ChatPolicy(chat, decode),
                recorder=recorder,
                model=lease["model"],
            )
            planned = config.read_as(RepeatedEpisodes)
            attempts = task_attempts(
                split_tasks(world.meta(), rules.split, planned.limit),
                planned.attempts,
                seed=planned.seed,
                prompt_seed=0,
                prompt_per_attempt=False,
            )
            config.assert_all_read()
            if tells:
                await compare_with_trainer(job, stage.policy)

            async def play_attempt(attempt: Attempt) -> Row:
                return await play(stage, attempt)

            async def lost() -> str | None:
                return await lost_server(job.leases)

            await play_recorded(
                job, rules, attempts, play=play_attempt, lost=lost, keeps_all=keeps_all
            )


if __name__ == "__main__":
    sys.exit(run_job("rollout", play_taskset, on_overflow=ON_OVERFLOW))
