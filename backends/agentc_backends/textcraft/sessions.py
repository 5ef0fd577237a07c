"""The open episodes of a server: numbered as AgentGym numbers them, limited, and expiring.

Used by `server.py` from one event loop without awaiting in between, so it takes no locks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.textcraft.environment import TextCraftEnvironment


class TooManySessionsError(RuntimeError):
    """The server holds as many sessions as it may."""


class UnknownSessionError(KeyError):
    """No open session has this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.message = f"The id {number} is not valid."


@dataclass(slots=True)
class Session:
    """One episode, and what its last request answered."""

    number: int
    environment: TextCraftEnvironment
    observation: str = ""
    reward: float = 0.0
    done: bool = False
    used_at: float = 0.0

    def reset(self, task_id: str, seed: int) -> None:
        self.observation, _ = self.environment.reset(task_id, seed=seed)
        self.reward, self.done = 0.0, False

    def step(self, action: str) -> None:
        self.observation, self.reward, self.done, _, _ = self.environment.step(action)

    def snapshot(self) -> dict[str, Any]:
        """The episode together with its last answer, so that a fork can repeat it."""
        answer = {"observation": self.observation, "reward": self.reward}
        return {**self.environment.snapshot(), **answer}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        match snapshot:
            case {"observation": str(observation), "reward": (0 | 1) as reward, "done": done}:
                self.environment.restore(snapshot)
            case _:
                raise ValueError("not a snapshot of a TextCraft session")
        self.observation, self.reward, self.done = observation, float(reward), bool(done)


class SessionStore:
    """Sessions by number, least recently used first."""

    def __init__(
        self,
        open_environment: Callable[[], TextCraftEnvironment],
        clock: Callable[[], float],
        *,
        max_sessions: int,
        idle_timeout: float,
    ) -> None:
        self._open_environment = open_environment
        self._clock = clock
        self._max_sessions = max_sessions
        self._idle_timeout = idle_timeout
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        self._next_number = 0

    def __len__(self) -> int:
        self._expire()
        return len(self._sessions)

    def create(self) -> Session:
        self._expire()
        if len(self._sessions) >= self._max_sessions:
            raise TooManySessionsError(
                f"all {self._max_sessions} sessions are in use; close one or try again later"
            )
        # Numbers are never used again: a late request must not reach somebody else's episode.
        session = Session(self._next_number, self._open_environment(), used_at=self._clock())
        self._next_number += 1
        self._sessions[session.number] = session
        return session

    def get(self, number: int) -> Session:
        self._expire()
        if number not in self._sessions:
            raise UnknownSessionError(number)
        session = self._sessions[number]
        session.used_at = self._clock()
        self._sessions.move_to_end(number)
        return session

    def close(self, number: int) -> bool:
        """Whether there was such a session."""
        self._expire()
        return self._sessions.pop(number, None) is not None

    def _expire(self) -> None:
        oldest_allowed = self._clock() - self._idle_timeout
        while self._sessions:
            session = next(iter(self._sessions.values()))
            if session.used_at >= oldest_allowed:
                return
            del self._sessions[session.number]
