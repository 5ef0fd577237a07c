"""Job: a program of the user's own plays the episodes.
`python -m agentc_backends.agents.command.job_command JOB.json`.

Leases: `policy` and `environment`. Finished episodes lie in `work/episodes.jsonl`, so a rerun after
a kill plays only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from agentc.runtime.program import Job, write_rows
from agentc_backends.agents.client.errors import InfrastructureError
from agentc_backends.agents.command.agent_process import AgentProgram
from agentc_backends.agents.command.door import Door
from agentc_backends.agents.command.play import UNPROVED, ProgramStage, play
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import Attempt, EpisodeRecord
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.rest import WorkProgress, play_rest
from agentc_backends.agents.common.runner import Row
from agentc_backends.agents.common.tasks import attempts_at, read_rules, tasks_of
from agentc_backends.agents.recorded.history import REASONS
from agentc_backends.agents.recorded.recorder import recording

REFUSED = "refused.jsonl"
"""Beside the rows: the episodes that have none, and why."""
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
            _tell(job, rows, progress)
            _publish(job, rows, keeps_all=keeps_all)


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


def _tell(job: Job, rows: Sequence[Row], progress: WorkProgress) -> None:
    """The facts of a rollout, and of how many episodes nothing is proved."""
    stops: Counter[str] = Counter()
    for row in rows:
        stops.update(row["stops"])
    refused = Counter(row[UNPROVED]["reason"] for row in rows if UNPROVED in row)
    job.facts(
        episodes=len(rows),
        errors=sum(row["end"] == "error" for row in rows),
        resumed=progress.resumed,
        reward_mean=progress.mean,
        successes=sum(row["success"] for row in rows),
        ends=dict(sorted(Counter(row["end"] for row in rows).items())),
        stops=dict(sorted(stops.items())),
        turns=sum(row["turns"] for row in rows),
        invalid=sum(row["invalid"] for row in rows),
        prompt_tokens=sum(row["tokens"]["prompt"] for row in rows),
        completion_tokens=sum(row["tokens"]["completion"] for row in rows),
        proved=len(rows) - refused.total() - sum(row["end"] == "error" for row in rows),
        unproved=dict(sorted(refused.items())),
        **progress.per_second,
    )
    for reason, number in sorted(refused.items()):
        print(f"no row can be proved of {number} episodes: {REASONS[reason]} ({reason})")


def _publish(job: Job, rows: Sequence[Row], *, keeps_all: bool) -> None:
    refused = [row for row in rows if UNPROVED in row]
    kept = rows if keeps_all else [row for row in rows if UNPROVED not in row]
    if not kept:
        first = refused[0]
        why = first[UNPROVED]
        raise FatalError(
            f"not one of {len(rows)} episodes can be proved to train what was drawn; the first, "
            f"{first['id']}: {REASONS[why['reason']]} ({why['detail']}). docs/harnesses.md says "
            "what that means; `evaluate` needs no proof"
        )
    write_rows(job.out / "trajectories.jsonl", kept)
    write_rows(
        job.out / REFUSED,
        [
            {name: row[name] for name in ("id", "task_id", "attempt", "reward", "end", "turns")}
            | row[UNPROVED]
            for row in refused
        ],
    )


if __name__ == "__main__":
    sys.exit(run_job("rollout", roll_out, on_overflow=_ON_OVERFLOW))
