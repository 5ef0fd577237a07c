"""Job: expert trajectories. `python -m agentc_backends.agents.expert.job_expert JOB.json`.

The steps of an environment's planner are replayed in it, so that observations and reward are real.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentc.kinds.interaction import ExpertSettings
from agentc.program.artifact_files import TRAJECTORIES_FILE
from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.connect import AgentGymWorld, connect
from agentc_backends.agents.common.episode import (
    Attempt,
    EpisodeRecord,
    EpisodeRules,
    EpisodeSource,
    Reply,
    read_rules,
    split_tasks,
    task_attempts,
)
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.prompts import observation_message, reply_text
from agentc_backends.agents.common.runner import run_concurrently

_IN_FLIGHT = 16


async def collect(job: Job) -> None:
    """Replay the plans of the job and write trajectories.jsonl."""
    config = job.config
    settings = config.read_as(ExpertSettings)
    max_turns, thoughts = settings.max_turns, settings.thoughts
    async with connect(job.leases, None, _IN_FLIGHT) as servers:
        meta = await servers.world.meta()
        rules = read_rules(config, meta)
        attempts = task_attempts(
            split_tasks(meta, rules.split, settings.limit),
            settings.attempts,
            seed=settings.seed,
            prompt_seed=settings.seed,
            prompt_per_attempt=True,
        )
        config.assert_all_read()
        rows = await _replay_all(
            job, rules, servers.world, attempts, thoughts=thoughts, max_turns=max_turns
        )
    job.facts(
        episodes=len(rows),
        left_out=len(attempts) - len(rows),
        successes=sum(row["success"] for row in rows),
        turns=sum(row["turns"] for row in rows),
        reward_mean=sum(row["reward"] for row in rows) / len(rows) if rows else None,
    )
    if not rows:
        raise FatalError(
            f"every one of {len(attempts)} plans needs more than max_turns = {max_turns} turns; "
            "raise it, or narrow the environment's tasks"
        )
    write_rows(job.out / TRAJECTORIES_FILE, rows)


async def _replay_all(
    job: Job,
    rules: EpisodeRules,
    world: AgentGymWorld,
    attempts: list[Attempt],
    *,
    thoughts: bool,
    max_turns: int | None,
) -> list[dict[str, Any]]:
    """Rows in the order of `attempts`, without those whose plan is too long. The first failure of
    the environment ends all."""
    rows: dict[str, dict[str, Any] | None] = {}

    async def work(attempt: Attempt) -> None:
        steps = await world.plan(attempt.task_id, attempt.prompt_seed)
        row = None
        if max_turns is None or len(steps) <= max_turns:
            plan = [PlannedStep(step["action"], step.get("thought")) for step in steps]
            row = await replay(rules, attempt, plan, world, thoughts=thoughts)
        rows[attempt.id] = row
        job.progress(len(rows), len(attempts), "episodes")

    await run_concurrently(attempts, _IN_FLIGHT, work)
    found = (rows[attempt.id] for attempt in attempts)
    return [row for row in found if row is not None]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of an expert: what it thinks, where it says so, and what it does."""

    action: str
    thought: str | None


async def replay(
    rules: EpisodeRules,
    attempt: Attempt,
    plan: Sequence[PlannedStep],
    world: EpisodeSource,
    *,
    thoughts: bool,
) -> dict[str, Any]:
    """One expert trajectory, with the reward that the environment gives (never one assumed).

    A plan that ends before the environment says so is a failure with the reward so far.
    """
    record, prompt = EpisodeRecord(rules, attempt, "expert"), rules.prompt
    async with world.open(attempt.task_id, attempt.prompt_seed) as session:
        record.open(session.observation)
        for step in plan:
            # A step without a thought is an action alone.
            thought = (step.thought or None) if thoughts else None
            record.add_reply(Reply(reply_text(prompt, step.action, thought), "plan", 0, 0))
            answer = await session.step(step.action)
            record.add_step(answer)
            record.messages.append(
                observation_message(
                    prompt.observation_prefix, answer.observation, prompt.answered_by
                )
            )
            if answer.done:
                break
    return record.row("success" if record.reward >= rules.success_at else "failure")


if __name__ == "__main__":
    sys.exit(run_job("expert", collect))
