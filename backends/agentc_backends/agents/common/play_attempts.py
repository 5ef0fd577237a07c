"""Plays the attempts of a rollout, whoever acts in them, and counts what came of them.

Rollouts of our own (`agents/rollout`) and those of programs of others (`recorded/published.py`)
play by it. Neighbour: `rest.py`, which plays what an earlier attempt at the job did not finish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agentc.program.job import Job
from agentc_backends.agents.common.episode import Attempt
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.rest import WorkProgress, play_rest
from agentc_backends.agents.common.runner import Lost, Row
from agentc_backends.clients.errors import InfrastructureError

ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `end` would end the episode with its "
    "reward so far."
)


async def play_attempts(
    job: Job,
    attempts: Sequence[Attempt],
    *,
    play: Callable[[Attempt], Awaitable[Row]],
    lost: Lost,
    broken: Callable[[Attempt, InfrastructureError], Row],
) -> tuple[list[Row], dict[str, Any]]:
    """The rows in the order of the attempts, which `work/episodes.jsonl` keeps, and the facts of
    all. Raises what `play_rest` does."""
    progress = WorkProgress(
        job=job, total=len(attempts), noun="episodes", speed="tokens_per_s", digits=1
    )
    with Journal(job.work / "episodes.jsonl") as journal:
        rows = await play_rest(
            attempts,
            journal,
            progress,
            key=lambda attempt: (attempt.task_id, attempt.number),
            play=play,
            reward=lambda row: row["reward"],
            made=lambda row: row["tokens"]["completion"],
            lost=lost,
            broken=broken,
            name=lambda attempt: attempt.id,
        )
    return [*rows], _facts(rows, progress)


def _facts(rows: Sequence[Row], progress: WorkProgress) -> dict[str, Any]:
    stops: Counter[str] = Counter()
    for row in rows:
        stops.update(row["stops"])
    return {
        "episodes": len(rows),
        "errors": sum(row["end"] == "error" for row in rows),
        "resumed": progress.resumed,
        "reward_mean": progress.mean,
        "reward_least": min(progress.rewards, default=None),
        "reward_most": max(progress.rewards, default=None),
        "successes": sum(row["success"] for row in rows),
        "ends": dict(sorted(Counter(row["end"] for row in rows).items())),
        "stops": dict(sorted(stops.items())),
        "turns": sum(row["turns"] for row in rows),
        "invalid": sum(row["invalid"] for row in rows),
        "cut_by_context": sum(row.get("cut_by_context", 0) for row in rows),
        "prompt_tokens": sum(row["tokens"]["prompt"] for row in rows),
        "completion_tokens": sum(row["tokens"]["completion"] for row in rows),
        **progress.per_second,
    }
