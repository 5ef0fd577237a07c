"""How fast a client may go: requests per minute, tokens per minute, requests in flight.

Local servers queue by themselves and need none of it; remote endpoints bill and ban.
Neighbour: `transport.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """None leaves a rate unlimited. `concurrency` also sizes the connection pool."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    concurrency: int = 64


class Bucket:
    """A token bucket that holds at most `burst_s` seconds of its rate and may go into debt.

    Debt lets what a request really cost be charged after the fact.
    """

    def __init__(
        self, per_minute: float, *, burst_s: float = 1.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._rate = per_minute / 60.0
        self._most = max(1.0, self._rate * burst_s)
        self._level = self._most
        self._clock = clock
        self._then = clock()

    def take(self, amount: float) -> float:
        """Take an amount; returns the seconds to wait before acting on it."""
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._then) * self._rate)
        self._then = now
        self._level -= amount
        return max(0.0, -self._level / self._rate)

    def refund(self, amount: float) -> None:
        self._level += amount


class RequestGate:
    """Enforces limits on requests that pass through it."""

    def __init__(self, limits: RateLimits, clock: Callable[[], float] = monotonic) -> None:
        self._slots = asyncio.Semaphore(limits.concurrency)
        rpm, tpm = limits.requests_per_minute, limits.tokens_per_minute
        self._requests = None if rpm is None else Bucket(rpm, clock=clock)
        # A prompt of ordinary length must fit the bucket, or each would wait for a minute's worth.
        self._tokens = None if tpm is None else Bucket(tpm, burst_s=6.0, clock=clock)

    @asynccontextmanager
    async def admit(self, expected_tokens: float) -> AsyncIterator[None]:
        """Hold a place in flight; waits for its turn first."""
        async with self._slots:
            wait = 0.0
            if self._requests is not None:
                wait = self._requests.take(1.0)
            if self._tokens is not None:
                wait = max(wait, self._tokens.take(expected_tokens))
            if wait > 0.0:
                await asyncio.sleep(wait)
            yield

    def settle(self, expected_tokens: float, actual_tokens: float) -> None:
        """Correct the charge once the reply says what the request has cost."""
        if self._tokens is not None:
            self._tokens.refund(expected_tokens - actual_tokens)
