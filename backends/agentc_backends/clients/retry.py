"""The one retry policy: exponential backoff with full jitter, a cap and a deadline.

Full jitter (each wait drawn uniformly from zero to the current bound) spreads clients that were
refused together. Neighbour: `transport.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
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
