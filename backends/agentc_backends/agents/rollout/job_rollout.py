"""Job: play episodes. `python -m agentc_backends.agents.rollout.job_rollout JOB.json`.

Leases: `policy` and `environment`; with several `candidates` for each turn `critic`, and
`reference` where that is not the policy. Finished episodes lie in `work/episodes.jsonl`, so a rerun
after a kill plays only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from agentc.runtime.program import Job, write_rows
from agentc_backends.agents.client.errors import InfrastructureError
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.behind import Divergences, facts_behind, job_prefixes
from agentc_backends.agents.common.connect import Servers, connect
from agentc_backends.agents.common.episode import Attempt
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.rest import WorkProgress, play_rest
from agentc_backends.agents.common.runner import Row
from agentc_backends.agents.common.tasks import attempts_at, attempts_behind, read_rules, tasks_of
from agentc_backends.agents.rollout.choice import choice_facts, chosen_by
from agentc_backends.agents.rollout.episode import BrokenEpisodeError, play
from agentc_backends.agents.rollout.prefix_replay import ReplayRules
from agentc_backends.agents.rollout.turns import TurnRules

_ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `end` would end the episode with its "
    "reward so far."
)


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
        turns = config.read_as(TurnRules)
        again = ReplayRules()
        tasks = tasks_of(meta, rules.split, config["limit"])
        if job.inputs("prefixes"):
            again = ReplayRules(config["prefix"]["counted"], job.placement["same_state"])
            seed = config["seed"]
            prefixes = job_prefixes(
                job, rules.prompt.observation_prefix, tasks, seed, longest=turns.max_turns - 1
            )
            attempts = attempts_behind(prefixes, tasks, config["attempts"], seed=seed)
        else:
            attempts = attempts_at(
                tasks,
                config["attempts"],
                seed=config["seed"],
                prompt_seed=config["prompt_seed"],
                prompt_per_attempt=config["prompt_per_attempt"],
            )
        config.assert_all_read()
        policy = servers.policy
        assert policy is not None
        await compare_with_trainer(job, policy)
        chooser = None
        if candidates > 1:
            chooser = await clients.enter_async_context(chosen_by(job, policy, candidates))

        async def play_one(attempt: Attempt) -> Row:
            acting = policy if chooser is None else chooser.at(attempt.task_id)
            return await play(rules, turns, attempt, acting, servers.world, again)

        with Journal(job.work / "episodes.jsonl") as journal:
            rows = await _play_all(job, play_one, attempts, journal, servers)
        if candidates > 1:
            job.facts(**choice_facts(rows, candidates))
    write_rows(job.out / "trajectories.jsonl", rows)


async def _play_all(
    job: Job,
    play_one: Callable[[Attempt], Awaitable[Row]],
    attempts: Sequence[Attempt],
    journal: Journal,
    servers: Servers,
) -> list[Row]:
    """All rows of the stage, in order. Raises FatalError where more prefixes lead elsewhere than
    the error budget allows."""
    divergences = Divergences(len(attempts), job.placement["error_budget"])

    async def play_checked(attempt: Attempt) -> Row:
        return divergences.check(await play_one(attempt))

    def broken(attempt: Attempt, error: InfrastructureError) -> Row:
        assert isinstance(error, BrokenEpisodeError)
        return error.record.row("error", str(error))

    progress = WorkProgress(
        job=job, total=len(attempts), noun="episodes", speed="tokens_per_s", digits=1
    )
    played = await play_rest(
        attempts,
        journal,
        progress,
        key=lambda attempt: (attempt.task_id, attempt.number),
        play=play_checked,
        reward=lambda row: row["reward"],
        made=lambda row: row["tokens"]["completion"],
        lost=servers.lost,
        broken=broken,
        name=lambda attempt: attempt.id,
    )
    rows = [*played]
    stops: Counter[str] = Counter()
    for row in rows:
        stops.update(row["stops"])
    job.facts(
        episodes=len(rows),
        errors=sum(row["end"] == "error" for row in rows),
        resumed=progress.resumed,
        reward_mean=progress.mean,
        successes=sum(row["success"] for row in rows),
        ends=dict(sorted(Counter(row["end"] for row in rows).items())),
        stops=dict(sorted(stops.items())),
        turns=sum(row["turns"] - _given(row) for row in rows),
        invalid=sum(row["invalid"] for row in rows),
        prompt_tokens=sum(row["tokens"]["prompt"] for row in rows),
        completion_tokens=sum(row["tokens"]["completion"] for row in rows),
        **progress.per_second,
    )
    if any("origin" in row for row in rows):
        job.facts(**facts_behind(rows, _given))
    return rows


def _given(row: Row) -> int:
    """The turns of an episode that its policy did not take."""
    # An error may have ended it before all of them were played again.
    return min(row["origin"]["turns"], row["turns"]) if "origin" in row else 0


if __name__ == "__main__":
    sys.exit(run_job("rollout", roll_out, on_overflow=_ON_OVERFLOW))
