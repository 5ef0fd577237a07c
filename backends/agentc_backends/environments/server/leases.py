"""Clients that promise to be heard of: when one is not, its lease runs out, and its sessions end.

A client gives itself a name and a time; every request that names it, and every use of one of its
sessions, renews the lease. Neighbour: `sessions.py`, which ends the sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MOST_LEASE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Who asks: a client's name, and for how long it wants to be waited for."""

    client: str
    seconds: float


@dataclass(slots=True)
class SessionLease:
    seconds: float
    ends_at: float
    sessions: set[int] = field(default_factory=set)


class Leases:
    """By client's name; used from one event loop, so it takes no locks."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[str, SessionLease] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, client: str) -> bool:
        return client in self._held

    def take(self, holder: Holder) -> SessionLease:
        """The client's lease, new or renewed, for as long as it says now."""
        lease = self._held.setdefault(holder.client, SessionLease(holder.seconds, 0.0))
        lease.seconds = holder.seconds
        lease.ends_at = self._clock() + holder.seconds
        return lease

    def touch(self, client: str) -> None:
        lease = self._held.get(client)
        if lease is not None:
            lease.ends_at = self._clock() + lease.seconds

    def add_session(self, client: str, number: int) -> None:
        """Of a client whose lease may have ended since its request came: then it lives by none
        and is ended when idle."""
        lease = self._held.get(client)
        if lease is not None:
            lease.sessions.add(number)

    def forget_session(self, client: str, number: int) -> None:
        lease = self._held.get(client)
        if lease is not None:
            lease.sessions.discard(number)

    def end(self, client: str) -> set[int]:
        """The sessions that the client leaves behind."""
        lease = self._held.pop(client, None)
        return set() if lease is None else lease.sessions

    def run_out(self) -> Iterator[str]:
        """Clients that have not been heard of for too long."""
        now = self._clock()
        return iter([name for name, lease in self._held.items() if lease.ends_at < now])

    def has_run_out(self, client: str) -> bool:
        lease = self._held.get(client)
        return lease is not None and lease.ends_at < self._clock()

    def sessions(self, client: str) -> tuple[int, ...]:
        return tuple(self._held[client].sessions) if client in self._held else ()
