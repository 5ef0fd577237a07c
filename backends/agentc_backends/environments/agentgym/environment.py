"""An AgentGym server as an environment of agentc: `environments.server` serves it like any other.

Each episode holds a session of the upstream server while it is open. Calls wait for that server,
so they block; what fails there is an EnvironmentFailure, which voids the episode. What a member of
the family does after an episode's end is never asked for: it is answered here.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agentc_backends.environments.agentgym.dialects import UpstreamDialect
from agentc_backends.environments.agentgym.upstream import (
    ErrorReplyError,
    NoAnswerError,
    Upstream,
    UpstreamError,
)
from agentc_backends.environments.external.environment import RewardError, RunningScore
from agentc_backends.environments.external.task_lists import Fingerprint, Numbers, task_id
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError
from agentc_backends.environments.server.splits import fold_numbers

OVER = "The episode is over; reset the session to start another."


@dataclass(frozen=True, slots=True)
class UpstreamShared:
    """What all episodes of a server share. `changes` are the spec's overrides of the dialect."""

    upstream: Upstream
    splits: Mapping[str, Numbers]
    fingerprint: Fingerprint
    greeting: str
    release: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dialect(self) -> UpstreamDialect:
        return self.upstream.dialect

    def numbers(self) -> dict[str, int]:
        """Task id to number, in the order of the splits."""
        name = self.dialect.name
        return {task_id(name, n): n for part in self.splits.values() for n in part}


class AgentGymEnvironment:
    """One episode at a time, on a session of the upstream server."""

    name: ClassVar[str] = "agentgym"
    version: ClassVar[str] = "1"
    reward_kind: ClassVar[str] = "latest"
    capabilities: ClassVar[frozenset[str]] = frozenset()
    blocking: ClassVar[bool] = True
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ("step_limit",)

    def __init__(self, served: UpstreamShared, numbers: Mapping[str, int]) -> None:
        """`numbers` are `served.numbers()`, made once for all episodes."""
        self._served = served
        self._numbers = numbers
        self._session: int | None = None
        self._score: RunningScore | None = None
        self._reward = 0.0
        self._done = False

    @property
    def title(self) -> str:
        return f"AgentGym {self._served.dialect.name}"

    @property
    def reward_range(self) -> tuple[float, float]:
        return self._served.dialect.scaled_range

    @property
    def success_threshold(self) -> float:
        return self._served.dialect.success_at

    @property
    def default_max_steps(self) -> int:
        return self._served.dialect.max_turns

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._served.splits)

    def tasks(self, split: str) -> tuple[str, ...]:
        name = self._served.dialect.name
        return tuple(task_id(name, number) for number in self._served.splits[split])

    def has_task(self, task_id: str) -> bool:
        return task_id in self._numbers

    def numbered_tasks(self) -> Sequence[str]:
        last = max(self._numbers.values())
        return [task_id(self._served.dialect.name, number) for number in range(last + 1)]

    def identity(self) -> dict[str, Any]:
        served = self._served
        parts = json.dumps([[name, fold_numbers(part)] for name, part in served.splits.items()])
        return {
            "name": self.name,
            "version": self.version,
            "server": served.dialect.name,
            "release": served.release,
            "dialect": dict(served.changes),
            "greeting": served.greeting,
            "splits_sha256": hashlib.sha256(parts.encode()).hexdigest(),
            "fingerprint": served.fingerprint.value,
            "probes": list(served.fingerprint.probes),
        }

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a task. The family has no prompt seeds; `seed` changes nothing."""
        del seed
        upstream = self._served.upstream
        try:
            if self._session is None:
                self._session = upstream.acquire()
            observation = upstream.reset(self._session, self._numbers[task_id])
        except UpstreamError as error:
            self._abandon(error)
            raise EnvironmentFailure(str(error)) from error
        self._score = RunningScore(self._served.dialect.reward_rule)
        self._reward, self._done = 0.0, False
        limit = self._served.dialect.step_limit
        return observation, {} if limit is None else {"step_limit": limit}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._session is None or self._score is None:
            raise EpisodeError("reset the session before its first step")
        if self._done:
            # Members of the family refuse here, or play on with `done` fallen back to false.
            return OVER, self._reward, True, False, {}
        try:
            turn = self._served.upstream.step(self._session, action)
            reward = self._score.after(turn.reward)
        except (UpstreamError, RewardError) as error:
            if isinstance(error, ErrorReplyError) and self._errors_as_observations:
                return error.text, self._reward, False, False, {}
            self._abandon(error)
            raise EnvironmentFailure(str(error)) from error
        self._reward, self._done = reward, turn.done
        return turn.observation, self._reward, self._done, False, {}

    def close(self) -> None:
        if self._session is not None:
            self._give_back(usable=True)

    @property
    def _errors_as_observations(self) -> bool:
        return self._served.dialect.step_errors == "observation"

    def _abandon(self, error: UpstreamError | RewardError) -> None:
        """The upstream session's state is unknown: no episode may get it."""
        self._score = None
        if self._session is not None:
            self._give_back(usable=False, settled=not isinstance(error, NoAnswerError))

    def _give_back(self, *, usable: bool, settled: bool = True) -> None:
        session, self._session = self._session, None
        assert session is not None
        upstream = self._served.upstream
        if usable:
            upstream.release(session)
        else:
            # Closing waits for the server, which may be the one that hangs.
            threading.Thread(
                target=upstream.release,
                args=(session,),
                kwargs={"usable": False, "settled": settled},
                name="abandoned",
                daemon=True,
            ).start()
