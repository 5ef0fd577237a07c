"""Job: play episodes. `python -m agentc_backends.agents.rollout.job_rollout JOB.json`.

Leases: `policy` and `environment`; with several `candidates` for each turn `critic`, and
`reference` where that is not the policy. Finished episodes lie in `work/episodes.jsonl`, so a rerun
after a kill plays only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from agentc.program.artifact_files import TRAJECTORIES_FILE
from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import Servers, connect
from agentc_backends.agents.common.episode import (
    Attempt,
    planned_attempts,
    prefix_attempts,
    read_rules,
    split_tasks,
)
from agentc_backends.agents.common.prefixes import Divergences, job_prefixes, prefix_facts
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.runner import ON_OVERFLOW, Row, play_attempts
from agentc_backends.agents.common.settings import PlannedEpisodes
from agentc_backends.agents.rollout.choice import choice_facts, open_chooser
from agentc_backends.agents.rollout.play import BrokenEpisodeError, ReplayRules, TurnRules, play
from agentc_backends.clients.errors import InfrastructureError


async def roll_out(job: Job) -> None:
    """Play the episodes of the job and write trajectories.jsonl."""
    config = job.config
    decode = config["decode"]
    candidates = config["candidates"] if job.inputs("critic") else 1
    async with (
        AsyncExitStack() as clients,
        connect(job.leases, decode, job.placement["concurrency"]) as servers,
    ):
        meta = await servers.world.meta()
        rules = read_rules(config, meta)
        turns, planned = config.read_as(TurnRules), config.read_as(PlannedEpisodes)
        again = ReplayRules()
        tasks = split_tasks(meta, rules.split, planned.limit)
        if job.inputs("prefixes"):
            again = ReplayRules(planned.prefix.counted, job.placement["same_state"])
            prefixes = job_prefixes(
                job,
                rules.prompt.observation_prefix,
                tasks,
                planned.prefix,
                planned.seed,
                longest=turns.max_turns - 1,
            )
            attempts = prefix_attempts(prefixes, tasks, planned.attempts, seed=planned.seed)
        else:
            attempts = planned_attempts(tasks, planned)
        config.assert_all_read()
        policy = servers.policy
        assert policy is not None
        await compare_with_trainer(job, policy)
        chooser = None
        if candidates > 1:
            chooser = await clients.enter_async_context(open_chooser(job, policy, candidates))

        async def play_attempt(attempt: Attempt) -> Row:
            acting = policy if chooser is None else chooser.at(attempt.task_id)
            return await play(rules, turns, attempt, acting, servers.world, again)

        rows = await _play_all(job, play_attempt, attempts, servers)
        if candidates > 1:
            job.facts(**choice_facts(rows, candidates))
    write_rows(job.out / TRAJECTORIES_FILE, rows)


async def _play_all(
    job: Job,
    play_attempt: Callable[[Attempt], Awaitable[Row]],
    attempts: Sequence[Attempt],
    servers: Servers,
) -> list[Row]:
    """All rows of the stage, in order. Raises FatalError where more prefixes lead elsewhere than
    the error budget allows."""
    divergences = Divergences(len(attempts), job.placement["error_budget"])

    async def play_checked(attempt: Attempt) -> Row:
        return divergences.check(await play_attempt(attempt))

    def broken(attempt: Attempt, error: InfrastructureError) -> Row:
        assert isinstance(error, BrokenEpisodeError)
        return error.record.row("error", str(error))

    rows, facts = await play_attempts(
        job, attempts, play=play_checked, lost=servers.lost, broken=broken
    )
    job.facts(**{**facts, "turns": sum(row["turns"] - _prefix_turns(row) for row in rows)})
    if any("origin" in row for row in rows):
        job.facts(**prefix_facts(rows, _prefix_turns))
    return rows


def _prefix_turns(row: Row) -> int:
    """The turns of an episode that its policy did not take."""
    # An error may have ended it before all of them were played again.
    return min(row["origin"]["turns"], row["turns"]) if "origin" in row else 0


if __name__ == "__main__":
    sys.exit(run_job("rollout", roll_out, on_overflow=ON_OVERFLOW))
