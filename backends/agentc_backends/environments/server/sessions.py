"""The open episodes of a server: numbered as AgentGym numbers them, limited, leased and expiring.

The store is used by `episodes.py` from one event loop without awaiting in between, so it takes
no locks; calls on one session of a blocking environment take turns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentc_backends.environments.server.environment import Dialect, Environment, Snapshots
from agentc_backends.environments.server.requests import (
    BusyError,
    RequestSequence,
    Turns,
    json_number,
)


class UnknownSessionError(KeyError):
    """No open session has this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.message = f"The id {number} is not valid."


@dataclass(slots=True)
class EnvironmentSession:
    """One episode, and what its last request answered.

    `client` names the lease that it lives by; without one it ends when idle for too long, unless
    it is `held` by an open connection. `spoken` is the dialect of the client that created it,
    None for the plain one.
    """

    number: int
    environment: Environment
    client: str | None = None
    spoken: Dialect | None = None
    observation: str = ""
    reward: float = 0.0
    done: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    used_at: float = 0.0
    held: bool = False
    closed: bool = False
    sequence: RequestSequence = field(default_factory=RequestSequence)
    turns: Turns = field(default_factory=Turns)

    def reset(self, task_id: str, seed: int) -> None:
        self.observation, self.info = self.environment.reset(task_id, seed=seed)
        self.reward, self.done = 0.0, False

    def step(self, action: str) -> None:
        self.observation, self.reward, terminated, truncated, self.info = self.environment.step(
            action
        )
        self.done = terminated or truncated

    def answer(self) -> dict[str, Any]:
        """What the last request answered, with what the environment reports."""
        answer = {
            "observation": self.observation,
            "reward": json_number(self.reward),
            "done": self.done,
        }
        answer.update(self.reported())
        if self.spoken is not None:
            answer.update(self.spoken.extras(self.environment))
        return answer

    def reported(self) -> dict[str, Any]:
        """The values of `info` that the environment reports."""
        return {n: self.info[n] for n in self.environment.reported if n in self.info}

    def opening(self) -> dict[str, Any]:
        return {**self.identification(), **self.answer()}

    def identification(self) -> dict[str, Any]:
        """Its number; a client with a lease also learns how many of its requests have acted, and
        by that, that requests can be numbered."""
        known = {} if self.client is None else {"seq": self.sequence.last}
        return {"id": self.number, **known}

    def snapshot(self) -> dict[str, Any]:
        """The episode together with its last answer, so that a fork can repeat it."""
        answer = {"observation": self.observation, "reward": self.reward}
        return {**cast(Snapshots, self.environment).snapshot(), **answer, **self.reported()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        low, high = self._rewards_of_steps()
        match snapshot:
            case {
                "observation": str(observation),
                "reward": (int() | float()) as reward,
                "done": done,
            } if low <= reward <= high:
                cast(Snapshots, self.environment).restore(snapshot)
            case _:
                title = self.environment.title
                raise ValueError(f"not a snapshot of a {title} session")
        self.observation, self.reward, self.done = observation, float(reward), bool(done)
        reported = self.environment.reported
        self.info = {name: snapshot[name] for name in reported if name in snapshot}

    def _rewards_of_steps(self) -> tuple[float, float]:
        """Between which a step's reward lies. Where rewards add up, one may lead from the lowest
        sum to the highest: more than an episode can have."""
        low, high = self.environment.reward_range
        low = min(low, 0)
        if self.environment.reward_kind == "sum":
            high = max(high, 0)
            return low - high, high - low
        return low, high

    def close(self) -> None:
        self.closed = True
        self.environment.close()


class SessionStore:
    """Sessions by number, least recently used first."""

    def __init__(
        self,
        open_environment: Callable[[], Environment],
        clock: Callable[[], float],
        *,
        max_sessions: int,
        idle_timeout: float,
    ) -> None:
        self._open_environment = open_environment
        self._clock = clock
        self._max_sessions = max_sessions
        self._idle_timeout = idle_timeout
        self._sessions: OrderedDict[int, EnvironmentSession] = OrderedDict()
        self._leases = Leases(clock)
        self._next_number = 0
        self._asked = 0
        """How often somebody asked for a session: those in use go on."""

    def __len__(self) -> int:
        self.sweep()
        return len(self._sessions)

    def census(self) -> dict[str, int]:
        """How many sessions are open, and how many clients hold leases."""
        return {"open": len(self), "clients": len(self._leases)}

    def create(
        self,
        holder: Holder | None = None,
        *,
        client: str | None = None,
        spoken: Dialect | None = None,
    ) -> EnvironmentSession:
        """A new session: of a client that takes or renews its lease, of one that has a lease, or
        of nobody in particular."""
        if len(self._sessions) >= self._max_sessions:
            self.sweep()
        if len(self._sessions) >= self._max_sessions:
            message = f"all {self._max_sessions} sessions are in use; close one or try again later"
            raise BusyError(message, self._asked)
        if holder is not None:
            self.renew(holder)
            client = holder.client
        # Numbers are never used again: a late request must not reach somebody else's episode.
        session = EnvironmentSession(
            self._next_number, self._open_environment(), client, spoken, used_at=self._clock()
        )
        self._next_number += 1
        self._sessions[session.number] = session
        if client is not None:
            self._leases.add_session(client, session.number)
        return session

    def get(self, number: int, client: str | None = None) -> EnvironmentSession:
        """`client` is who asks, where the request says so: it reaches its own sessions only."""
        self._end_idle()
        session = self._sessions.get(number)
        if session is None or (client is not None and session.client != client):
            raise UnknownSessionError(number)
        if session.client is not None:
            if self._leases.has_run_out(session.client):
                self._end_leased(session.client)
                if number not in self._sessions:
                    raise UnknownSessionError(number)
            self._leases.touch(session.client)
        self._asked += 1
        self._touch(session)
        return session

    def close(self, number: int, client: str | None = None) -> EnvironmentSession | None:
        """Takes a session out; the caller closes it. None when there is none."""
        self._end_idle()
        session = self._sessions.get(number)
        if session is None or (client is not None and session.client != client):
            return None
        del self._sessions[number]
        if session.client is not None:
            self._leases.touch(session.client)
            self._leases.forget_session(session.client, number)
        return session

    def renew(self, holder: Holder) -> int:
        """Take or renew a client's lease; answers how many sessions live by it."""
        if self._leases.has_run_out(holder.client):
            self._end_leased(holder.client)
        elif holder.client not in self._leases and len(self._leases) >= self._max_sessions:
            message = f"{self._max_sessions} clients hold leases; try again later"
            raise BusyError(message, self._asked)
        return len(self._leases.take(holder).sessions)

    def leave(self, client: str) -> list[EnvironmentSession]:
        """Ends a client's lease and takes its sessions out; the caller closes them."""
        return [self._sessions.pop(number) for number in sorted(self._leases.end(client))]

    def is_abandoned(self, session: EnvironmentSession) -> bool:
        """Whether its client is not heard of any more, so that no call of it needs to begin."""
        return session.client is not None and self._leases.has_run_out(session.client)

    def sweep(self) -> None:
        """End what is idle for too long, and what clients left that are not heard of."""
        self._end_idle()
        for client in self._leases.run_out():
            self._end_leased(client)

    def _touch(self, session: EnvironmentSession) -> None:
        session.used_at = self._clock()
        self._sessions.move_to_end(session.number)

    def _end_idle(self) -> None:
        oldest_allowed = self._clock() - self._idle_timeout
        while self._sessions:
            session = next(iter(self._sessions.values()))
            if session.used_at >= oldest_allowed:
                return
            if session.held or session.turns.locked():
                self._touch(session)
            else:
                self._end(session)

    def _end_leased(self, client: str) -> None:
        """A session that is in a call ends at the next sweep after it."""
        for each in self._leases.sessions(client):
            if not self._sessions[each].turns.locked():
                self._end(self._sessions[each])
        if not self._leases.sessions(client):
            self._leases.end(client)

    def _end(self, session: EnvironmentSession) -> None:
        del self._sessions[session.number]
        if session.client is not None:
            self._leases.forget_session(session.client, session.number)
        session.close()


# A client gives itself a name and a time; every request that names it, and every use of one of its
# sessions, renews its lease. When the lease runs out, its sessions end.

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
