"""Job: play episodes. `python -m agentc_backends.rollout_react.job_rollout JOB.json`.

Leases: `policy` and `environment`. Finished episodes lie in `work/episodes.jsonl`, so a rerun after
a kill plays only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentc.runtime.program import Job, JobConfig, load_job, write_rows
from agentc_backends.rollout_react.connect import Servers, connect
from agentc_backends.rollout_react.episode import (
    Attempt,
    ContextOverflowError,
    EpisodeRecord,
    EpisodeRules,
    FatalError,
    InfrastructureError,
    TurnRules,
    play,
)
from agentc_backends.rollout_react.journal import Journal
from agentc_backends.rollout_react.prompt import PromptError
from agentc_backends.rollout_react.runner import (
    ErrorBudgetError,
    Hooks,
    OutOfTimeError,
    ServerLostError,
    run_episodes,
)
from agentc_backends.rollout_react.tasks import attempts_at, read_rules, tasks_of

INFRASTRUCTURE = 75


def main() -> int:
    """Exit 0 with trajectories.jsonl written, 75 when servers failed or the time limit is near, 1
    when the job is wrong."""
    job = load_job()
    try:
        asyncio.run(_run(job))
    except (ServerLostError, ErrorBudgetError, InfrastructureError) as error:
        print(f"rollout: {error}", file=sys.stderr)
        return INFRASTRUCTURE
    except OutOfTimeError as stopped:
        print(f"rollout: {stopped}", file=sys.stderr)
        return job.out_of_time()
    except ContextOverflowError as error:
        print(
            f"rollout: {error}. `on_overflow: error` makes that a failure of the stage; `end` "
            "would end the episode with its reward so far.",
            file=sys.stderr,
        )
        return 1
    except (FatalError, PromptError) as error:
        print(f"rollout: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(job: Job) -> None:
    config = job.config
    decode = config["decode"]
    async with connect(job.leases, decode, job.placement["concurrency"]) as servers:
        meta = await servers.world.meta()
        rules = read_rules(config, meta)
        turns = _turn_rules(config)
        attempts = attempts_at(
            tasks_of(meta, rules.split, config["limit"]),
            config["attempts"],
            seed=config["seed"],
            prompt_seed=config["prompt_seed"],
            prompt_per_attempt=config["prompt_per_attempt"],
        )
        config.assert_all_read()
        with Journal(job.work / "episodes.jsonl") as journal:
            rows = await _play_rest(job, rules, turns, attempts, journal, servers)
    write_rows(job.out / "trajectories.jsonl", rows)


def _turn_rules(config: JobConfig) -> TurnRules:
    return TurnRules(
        max_turns=config["max_turns"],
        on_invalid=config["on_invalid"],
        on_overflow=config["on_overflow"],
        invalid_message=config["invalid_message"],
        invalid_reward=config["invalid_reward"],
        action_span=config["action_span"],
        action_space=config["action_space"],
        no_action=config["no_action"],
    )


async def _play_rest(
    job: Job,
    rules: EpisodeRules,
    turns: TurnRules,
    attempts: Sequence[Attempt],
    journal: Journal,
    servers: Servers,
) -> list[dict[str, Any]]:
    """All rows of the stage, in order; plays those that the journal does not hold."""
    policy = servers.policy
    assert policy is not None
    known = {(a.task_id, a.number) for a in attempts}
    done = {key: row for key, row in journal.finished.items() if key in known}
    rest = [a for a in attempts if (a.task_id, a.number) not in done]
    tally = _Tally(job, len(attempts), list(done.values()))

    async def play_one(attempt: Attempt) -> dict[str, Any]:
        return await play(rules, turns, attempt, policy, servers.world)

    def finished(row: dict[str, Any]) -> None:
        journal.append(row)
        tally.add(row)

    def broken(attempt: Attempt, error: InfrastructureError) -> dict[str, Any]:
        record = error.record or EpisodeRecord(rules, attempt, "policy")
        return record.row("error", str(error))

    tally.show()
    new = await run_episodes(
        rest,
        Hooks(
            play=play_one,
            lost=servers.lost,
            finished=finished,
            broken=broken,
            name=lambda attempt: attempt.id,
        ),
        concurrency=job.placement["concurrency"],
        error_budget=job.placement["error_budget"],
        total=len(attempts),
        time_left=job.time_left(),
    )
    tally.facts(resumed=len(done))
    done.update({(row["task_id"], row["attempt"]): row for row in new})
    return [done[a.task_id, a.number] for a in attempts]


class _Tally:
    """Counts for the progress line and the manifest."""

    def __init__(self, job: Job, total: int, rows: list[dict[str, Any]]) -> None:
        self._job = job
        self._total = total
        self._started = time.monotonic()
        self._new_tokens = 0
        self._rows = rows

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self._new_tokens += row["tokens"]["completion"]
        self.show()

    def show(self) -> None:
        rewards, speed = self._rewards(), round(self._tokens_per_s(), 1)
        done, total = len(self._rows), self._total
        if rewards:
            mean = round(sum(rewards) / len(rewards), 4)
            self._job.progress(done, total, "episodes", tokens_per_s=speed, reward=mean)
        else:
            self._job.progress(done, total, "episodes", tokens_per_s=speed)

    def facts(self, *, resumed: int) -> None:
        rewards, rows = self._rewards(), self._rows
        stops: Counter[str] = Counter()
        for row in rows:
            stops.update(row["stops"])
        self._job.facts(
            episodes=len(rows),
            errors=sum(row["end"] == "error" for row in rows),
            resumed=resumed,
            reward_mean=sum(rewards) / len(rewards) if rewards else None,
            successes=sum(row["success"] for row in rows),
            ends=dict(sorted(Counter(row["end"] for row in rows).items())),
            stops=dict(sorted(stops.items())),
            turns=sum(row["turns"] for row in rows),
            invalid=sum(row["invalid"] for row in rows),
            prompt_tokens=sum(row["tokens"]["prompt"] for row in rows),
            completion_tokens=sum(row["tokens"]["completion"] for row in rows),
            tokens_per_s=round(self._tokens_per_s(), 1),
        )

    def _rewards(self) -> list[float]:
        return [row["reward"] for row in self._rows if row["reward"] is not None]

    def _tokens_per_s(self) -> float:
        return self._new_tokens / max(time.monotonic() - self._started, 1e-3)


if __name__ == "__main__":
    sys.exit(main())
