"""Plays what an earlier attempt at a job did not finish, and shows how far the job is. Rollouts and
searches work alike: one row for each item, kept in a journal (`journal.py`, `runner.py`)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentc.program.job import Job
from agentc_backends.agents.common.journal import Identity, Journal
from agentc_backends.agents.common.runner import Hooks, Item, Lost, Row, run_episodes
from agentc_backends.clients.errors import InfrastructureError


@dataclass(slots=True, kw_only=True)
class WorkProgress:
    """The progress line of a job: `done` of `total` rows (`resumed` of them by an earlier attempt),
    the mean of their rewards, and how much was `made` a second, which is called `speed` and shown
    with so many `digits`."""

    job: Job
    total: int
    noun: str
    speed: str
    digits: int
    done: int = 0
    resumed: int = 0
    rewards: list[float] = field(default_factory=list)
    made: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, reward: float | None, made: int = 0) -> None:
        """Count a row; one without a score has no reward."""
        self.done += 1
        self.made += made
        if reward is not None:
            self.rewards.append(reward)

    def show(self) -> None:
        mean = self.mean
        numbers: dict[str, Any] = {} if mean is None else {"reward": round(mean, 4)}
        self.job.progress(self.done, self.total, self.noun, **self.per_second, **numbers)

    @property
    def mean(self) -> float | None:
        return sum(self.rewards) / len(self.rewards) if self.rewards else None

    @property
    def per_second(self) -> dict[str, Any]:
        """By its name."""
        seconds = max(time.monotonic() - self.began, 1e-3)
        return {self.speed: round(self.made / seconds, self.digits)}


async def play_rest(
    items: Sequence[Item],
    journal: Journal,
    progress: WorkProgress,
    *,
    key: Callable[[Item], Identity],
    play: Callable[[Item], Awaitable[Row]],
    reward: Callable[[Row], float | None],
    made: Callable[[Row], int],
    lost: Lost,
    broken: Callable[[Item, InfrastructureError], Row],
    name: Callable[[Item], str],
) -> Sequence[Row]:
    """The rows of all items, in their order, as they lie in the journal; plays those that it does
    not hold. Raises what `run_episodes` does."""
    known = {key(item) for item in items}
    done = [identity for identity in journal.finished if identity in known]
    for identity in done:
        progress.add(reward(journal.finished[identity]))
    progress.resumed = len(done)

    def finished(row: Row) -> None:
        journal.append(row)
        progress.add(reward(row), made(row))
        progress.show()

    progress.show()
    job = progress.job
    await run_episodes(
        [item for item in items if key(item) not in journal.finished],
        Hooks(
            play=play, lost=lost, finished=finished, broken=broken, name=name, noun=progress.noun
        ),
        concurrency=job.placement["concurrency"],
        error_budget=job.placement["error_budget"],
        total=len(items),
        time_left=job.time_left(),
    )
    return journal.rows([key(item) for item in items])
