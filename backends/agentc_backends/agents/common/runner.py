"""Plays many episodes at once and keeps infrastructure errors apart from the agent's failures.

A fixed number of workers draw items in order; rows go to the journal as they finish. An episode
hit by an infrastructure error is played again from its start (its seeds make it the same episode);
a server that is gone ends everything within seconds. Tree search runs its trees the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from agentc_backends.agents.common.failures import (
    ErrorBudgetError,
    OutOfTimeError,
    ServerLostError,
)
from agentc_backends.clients.errors import InfrastructureError

Row: TypeAlias = dict[str, Any]
Item = TypeVar("Item")
Answer = TypeVar("Answer")
Lost: TypeAlias = Callable[[], Awaitable[str | None]]
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
    lost: Lost
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

    async def play_one(item: Item) -> None:
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
        await asyncio.wait_for(work_through(items, concurrency, play_one), time_left)
    except asyncio.TimeoutError:
        if deadline is None or time.monotonic() < deadline:
            raise  # of an item
        late = True
    if late:
        raise OutOfTimeError(f"the time limit is near; {done} {hooks.noun} were finished")
    if len(errors) > allowed:
        raise ErrorBudgetError(_over_budget(errors, allowed, total, hooks.noun))


async def work_through(
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


async def until_answered(ask: Callable[[], Awaitable[Answer]], lost: Lost, name: str) -> Answer:
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
        return await until_answered(lambda: hooks.play(item), hooks.lost, hooks.name(item))
    except InfrastructureError as error:
        return hooks.broken(item, error)


def _over_budget(errors: Sequence[str], allowed: int, total: int, noun: str) -> str:
    shown = "\n".join(f"  {line}" for line in errors[:5])
    more = f"\n  and {len(errors) - 5} more" if len(errors) > 5 else ""
    return (
        f"{len(errors)} of {total} {noun} ended in an infrastructure error; error_budget allows "
        f"{allowed}. Finished {noun} are kept: a rerun plays only the rest.\n{shown}{more}"
    )
