"""Plays many episodes at once and keeps infrastructure errors apart from the agent's failures.

A fixed number of workers draw items in order; rows go to the journal as they finish, and a rerun
plays what is not in it. An episode hit by an infrastructure error is played again from its start
(its seeds make it the same episode); a server that is gone ends everything within seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from agentc.program.job import Job
from agentc_backends.agents.common.episode import Attempt
from agentc_backends.agents.common.failures import (
    ErrorBudgetError,
    OutOfTimeError,
    ServerLostError,
)
from agentc_backends.agents.common.journal import Identity, Journal
from agentc_backends.clients.errors import InfrastructureError

Row: TypeAlias = dict[str, Any]
Item = TypeVar("Item")
Answer = TypeVar("Answer")
LostCheck: TypeAlias = Callable[[], Awaitable[str | None]]
"""A sentence about a server that is gone, or None."""

_TRIES = 3
_PAUSE_S = 0.5

HOPELESS = 16
"""So many errors beyond the budget end the run early: the servers answer, but not usefully."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks(Generic[Item]):
    """What the runner calls: `play` one item (an attempt at a task), see which servers are `lost`,
    `finished` a row, make the row of an item that is `broken` for good. `name` and `noun` are for
    messages."""

    play: Callable[[Item], Awaitable[Row]]
    lost: LostCheck
    finished: Callable[[Row], None]
    broken: Callable[[Item, InfrastructureError], Row]
    name: Callable[[Item], str]
    noun: str = "episodes"


async def run_episodes(
    items: Sequence[Item],
    hooks: Hooks[Item],
    *,
    concurrency: int,
    error_budget: float,
    total: int,
    time_left: float | None = None,
) -> None:
    """Play all items; `finished` is given their rows in the order of arrival.

    `error_budget` is the share of `total` items that may end in infrastructure errors. With
    `time_left` (seconds) no item is begun that would take longer than what is left then, going by
    the longest so far, and those at play are cut off when it is over. Raises ServerLostError,
    ErrorBudgetError, OutOfTimeError, and what `play` raises beyond InfrastructureError.
    """
    deadline = None if time_left is None else time.monotonic() + time_left
    longest, late = 0.0, False
    allowed = int(error_budget * total + 1e-9)
    done = 0
    errors: list[str] = []

    async def play_attempt(item: Item) -> None:
        nonlocal longest, late, done
        began = time.monotonic()
        if deadline is not None and began + longest > deadline:
            late = True
            return
        row = await _row(item, hooks)
        longest = max(longest, time.monotonic() - began)
        done += 1
        hooks.finished(row)
        if row["end"] == "error":
            errors.append(f"{hooks.name(item)}: {row['error']}")
            if len(errors) > allowed + HOPELESS:
                raise ErrorBudgetError(_over_budget(errors, allowed, total, hooks.noun))

    try:
        await asyncio.wait_for(run_concurrently(items, concurrency, play_attempt), time_left)
    except asyncio.TimeoutError:
        if deadline is None or time.monotonic() < deadline:
            raise  # of an item
        late = True
    if late:
        raise OutOfTimeError(f"the time limit is near; {done} {hooks.noun} were finished")
    if len(errors) > allowed:
        raise ErrorBudgetError(_over_budget(errors, allowed, total, hooks.noun))


async def run_concurrently(
    items: Sequence[Item], concurrency: int, work: Callable[[Item], Awaitable[None]]
) -> None:
    """`work` on every item, `concurrency` at a time, begun in order. The first exception cancels
    the rest and is raised."""
    waiting = iter(items)

    async def draw() -> None:
        for item in waiting:
            await work(item)

    workers = [asyncio.create_task(draw()) for _ in range(min(concurrency, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def with_retries(ask: Callable[[], Awaitable[Answer]], lost: LostCheck, name: str) -> Answer:
    """What `ask` gives, tried again after infrastructure errors; `name` is for messages. Raises
    InfrastructureError after the last try, and ServerLostError at once where a server is gone."""
    for number in range(1, _TRIES + 1):
        try:
            return await ask()
        except InfrastructureError as error:
            gone = await lost()
            if gone is not None:
                raise ServerLostError(f"{gone} ({name}: {error})") from error
            if number == _TRIES:
                raise
            await asyncio.sleep(_PAUSE_S * 2 ** (number - 1))
    raise AssertionError("unreachable")


async def _row(item: Item, hooks: Hooks[Item]) -> Row:
    try:
        return await with_retries(lambda: hooks.play(item), hooks.lost, hooks.name(item))
    except InfrastructureError as error:
        return hooks.broken(item, error)


def _over_budget(errors: Sequence[str], allowed: int, total: int, noun: str) -> str:
    shown = "\n".join(f"  {line}" for line in errors[:5])
    more = f"\n  and {len(errors) - 5} more" if len(errors) > 5 else ""
    return (
        f"{len(errors)} of {total} {noun} ended in an infrastructure error; error_budget allows "
        f"{allowed}. Finished {noun} are kept: a rerun plays only the rest.\n{shown}{more}"
    )


@dataclass(slots=True, kw_only=True)
class WorkProgress:
    """The progress line of a job: `done` of `total` rows (`resumed` of them by an earlier attempt),
    the mean of their rewards, and how much was `made` a second, which is called `speed` and shown
    with that number of `digits`."""

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


async def play_unfinished(
    items: Sequence[Item],
    journal: Journal,
    progress: WorkProgress,
    *,
    key: Callable[[Item], Identity],
    play: Callable[[Item], Awaitable[Row]],
    reward: Callable[[Row], float | None],
    made: Callable[[Row], int],
    lost: LostCheck,
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


ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `end` would end the episode with its "
    "reward so far."
)


async def play_attempts(
    job: Job,
    attempts: Sequence[Attempt],
    *,
    play: Callable[[Attempt], Awaitable[Row]],
    lost: LostCheck,
    broken: Callable[[Attempt, InfrastructureError], Row],
) -> tuple[list[Row], dict[str, Any]]:
    """The rows in the order of the attempts, which `work/episodes.jsonl` keeps, and the facts of
    all. Raises what `play_unfinished` does."""
    progress = WorkProgress(
        job=job, total=len(attempts), noun="episodes", speed="tokens_per_s", digits=1
    )
    with Journal(job.work / "episodes.jsonl") as journal:
        rows = await play_unfinished(
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
