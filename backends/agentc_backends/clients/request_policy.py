"""When a request is tried again, how fast a client may go, and which replica it asks.

Exponential backoff with full jitter (each wait drawn uniformly from zero to the current bound)
spreads clients that were refused together. Local servers queue by themselves and need no limits;
remote endpoints bill and ban.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from time import monotonic, time

RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Try at most `attempts` times within `deadline_s` seconds of the first try's start.

    The n-th wait is drawn from [0, min(cap_s, base_s * 2**n)] by `source`. Where there are seconds
    of patience (`Patience`), what is waited for a busy server counts neither as a try nor as time.
    """

    attempts: int = 6
    base_s: float = 0.25
    cap_s: float = 10.0
    deadline_s: float = 300.0
    patience_s: float = 0.0
    source: random.Random = field(default_factory=random.Random, repr=False, compare=False)
    clock: Callable[[], float] = field(default=monotonic, repr=False, compare=False)

    def wait(self, tries: int, retry_after_s: float | None, elapsed_s: float) -> float | None:
        """Seconds to wait after `tries` failed tries; None when it is over.

        A service's Retry-After is honoured as a lower bound, even beyond the cap.
        """
        if tries >= self.attempts:
            return None
        bound = min(self.cap_s, self.base_s * 2.0 ** (tries - 1))
        wait = self.source.uniform(0.0, bound)
        if retry_after_s is not None:
            wait = retry_after_s + wait
        return None if elapsed_s + wait > self.deadline_s else wait


class Patience:
    """How long one request waits for servers that are busy (503 with Retry-After): they live and
    have done nothing of it. It ends `patience_s` seconds after the request began, or after the
    server's count of what it has `finished` last rose: one that goes on is waited for."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._since = policy.clock()
        self._finished: dict[str, int] = {}

    @property
    def waited_s(self) -> float:
        """Since something was finished, or since the request began."""
        return self._policy.clock() - self._since

    def lasts(self, server: str, finished: int | None) -> bool:
        """Whether to wait on, now that this server says that it is busy."""
        if finished is not None:
            if finished > self._finished.get(server, finished):
                self._since = self._policy.clock()
            self._finished[server] = finished
        return self.waited_s < self._policy.patience_s


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait: Retry-After as a number or as an HTTP date."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return None


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

    def correct_charge(self, expected_tokens: float, actual_tokens: float) -> None:
        """Correct the charge once the reply says what the request has cost."""
        if self._tokens is not None:
            self._tokens.refund(expected_tokens - actual_tokens)


def rank_replicas(urls: Sequence[str], key: str) -> list[str]:
    """The replicas in the order in which a key prefers them."""
    return sorted(urls, key=lambda url: blake2b(f"{url}\0{key}".encode()).digest(), reverse=True)
