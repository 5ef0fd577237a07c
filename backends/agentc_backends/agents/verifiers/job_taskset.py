"""Job: a taskset of verifiers is played under its own harness.
`python -m agentc_backends.agents.verifiers.job_taskset JOB.json`.

Lease: `policy`. Finished episodes lie in `work/episodes.jsonl`, so a rerun after a kill plays only
the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys

from agentc.runtime.program import Job
from agentc_backends.agents.client.errors import InfrastructureError
from agentc_backends.agents.client.leased import chat_client
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import ChatPolicy, lost_server
from agentc_backends.agents.common.episode import Attempt, EpisodeRecord
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.rest import WorkProgress, play_rest
from agentc_backends.agents.common.runner import Row
from agentc_backends.agents.common.tasks import attempts_at, read_rules, tasks_of
from agentc_backends.agents.recorded.published import publish, tell
from agentc_backends.agents.recorded.recorder import recording
from agentc_backends.agents.verifiers.home import settle
from agentc_backends.agents.verifiers.play import TasksetStage, play
from agentc_backends.agents.verifiers.world import opened

_ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `end` would end the episode with its "
    "reward so far."
)


async def play_taskset(job: Job) -> None:
    """Play the episodes of the job and write trajectories.jsonl and refused.jsonl."""
    config, concurrency = job.config, job.placement["concurrency"]
    decode, tells, lease = config["decode"], config["tells"], job.leases["policy"]
    keeps_all, turns = config["keeps_all"], config["max_turns"]
    async with (
        chat_client(lease, concurrency=concurrency) as chat,
        recording(lease, decode, concurrency=concurrency, tells=tells) as recorder,
    ):
        settle(job.work / "home", (lease.get("secrets") or {}).values())
        async with opened(
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
            attempts = attempts_at(
                tasks_of(world.meta(), rules.split, config["limit"]),
                config["attempts"],
                seed=config["seed"],
                prompt_seed=0,
                prompt_per_attempt=False,
            )
            config.assert_all_read()
            if tells:
                await compare_with_trainer(job, stage.policy)
            await _play_all(job, stage, attempts, keeps_all=keeps_all)


async def _play_all(
    job: Job, stage: TasksetStage, attempts: list[Attempt], *, keeps_all: bool
) -> None:
    async def play_one(attempt: Attempt) -> Row:
        return await play(stage, attempt)

    def broken(attempt: Attempt, error: InfrastructureError) -> Row:
        return EpisodeRecord(stage.rules, attempt, "policy").row("error", str(error))

    async def lost() -> str | None:
        return await lost_server(job.leases)

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
            lost=lost,
            broken=broken,
            name=lambda attempt: attempt.id,
        )
        tell(job, rows, progress)
        publish(job, rows, keeps_all=keeps_all)


if __name__ == "__main__":
    sys.exit(run_job("rollout", play_taskset, on_overflow=_ON_OVERFLOW))
