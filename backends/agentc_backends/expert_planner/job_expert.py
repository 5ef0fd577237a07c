"""Job: expert trajectories. `python -m agentc_backends.expert_planner.job_expert JOB.json`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agentc.runtime.program import Job, load_job, write_rows
from agentc_backends.expert_planner.replay import PlannedStep, replay
from agentc_backends.rollout_react.connect import AgentGymWorld, connect
from agentc_backends.rollout_react.episode import (
    Attempt,
    EpisodeRules,
    FatalError,
    InfrastructureError,
)
from agentc_backends.rollout_react.prompt import PromptError
from agentc_backends.rollout_react.runner import work_through
from agentc_backends.rollout_react.tasks import attempts_at, read_rules, tasks_of

INFRASTRUCTURE = 75
_IN_FLIGHT = 16


def main() -> int:
    """Exit 0 with trajectories.jsonl written, 75 when the environment failed, else 1."""
    job = load_job()
    try:
        return asyncio.run(_run(job))
    except InfrastructureError as error:
        print(f"expert: {error}", file=sys.stderr)
        return INFRASTRUCTURE
    except (FatalError, PromptError) as error:
        print(f"expert: {error}", file=sys.stderr)
        return 1


async def _run(job: Job) -> int:
    config = job.config
    max_turns, thoughts = config["max_turns"], config["thoughts"]
    async with connect(job.leases, None, _IN_FLIGHT) as servers:
        meta = await servers.world.meta()
        rules = read_rules(config, meta)
        attempts = attempts_at(
            tasks_of(meta, rules.split, config["limit"]),
            config["attempts"],
            seed=config["seed"],
            prompt_seed=config["seed"],
            prompt_per_attempt=True,
        )
        config.assert_all_read()
        collector = _Collector(job, rules, servers.world, thoughts, max_turns)
        rows = await collector.collect(attempts)
    job.facts(
        episodes=len(rows),
        left_out=len(attempts) - len(rows),
        successes=sum(row["success"] for row in rows),
        turns=sum(row["turns"] for row in rows),
        reward_mean=sum(row["reward"] for row in rows) / len(rows) if rows else None,
    )
    if not rows:
        print(
            f"expert: every one of {len(attempts)} plans needs more than max_turns = {max_turns} "
            "turns; raise it, or narrow the environment's tasks",
            file=sys.stderr,
        )
        return 1
    write_rows(job.out / "trajectories.jsonl", rows)
    return 0


class _Collector:
    """Replays plans, some at a time; the first failure of the environment ends all."""

    def __init__(
        self,
        job: Job,
        rules: EpisodeRules,
        world: AgentGymWorld,
        thoughts: bool,
        max_turns: int | None,
    ) -> None:
        self._job = job
        self._rules = rules
        self._world = world
        self._thoughts = thoughts
        self._max_turns = max_turns

    async def collect(self, attempts: list[Attempt]) -> list[dict[str, Any]]:
        """Rows in the order of `attempts`, without those whose plan is too long."""
        found: dict[str, dict[str, Any] | None] = {}

        async def work(attempt: Attempt) -> None:
            found[attempt.id] = await self._one(attempt)
            self._job.progress(len(found), len(attempts), "episodes")

        await work_through(attempts, _IN_FLIGHT, work)
        rows = [found[attempt.id] for attempt in attempts]
        return [row for row in rows if row is not None]

    async def _one(self, attempt: Attempt) -> dict[str, Any] | None:
        steps = await self._world.plan(attempt.task_id, attempt.prompt_seed)
        if self._max_turns is not None and len(steps) > self._max_turns:
            return None
        plan = [PlannedStep(step["action"], step.get("thought")) for step in steps]
        return await replay(self._rules, attempt, plan, self._world, thoughts=self._thoughts)


if __name__ == "__main__":
    sys.exit(main())
