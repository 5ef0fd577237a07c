"""An MCP server as an environment of agentc: `environments.server` serves it like any other.

An episode is a session of its own, and over stdio a process of its own; it is closed as soon as
the episode is over. Calls wait, so they block; what fails is an EnvironmentFailure, which voids
the episode.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agentc_backends.environments.external.environment import ExternalEnvironment, NotAnActionError
from agentc_backends.environments.external.task_lists import Fingerprint
from agentc_backends.environments.mcp.connection import (
    Greeting,
    McpSession,
    McpSessionError,
    McpUpstream,
)
from agentc_backends.environments.mcp.settings import McpSettings, McpTask, tasks_digest
from agentc_backends.environments.mcp.translation import FinalAnswer, ToolActions, chosen
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError
from agentc_backends.environments.server.settings import rules_of

OVER = "The episode is over; reset the session to start another."
_RIGHT, _WRONG = "That is the answer.", "That is not the answer."


@dataclass(frozen=True, slots=True)
class ServedTools:
    """What all episodes of a server share; `greeting` is that of the session which looked at it."""

    upstream: McpUpstream
    settings: McpSettings
    tasks: tuple[McpTask, ...]
    numbers: Mapping[str, int]
    greeting: Greeting
    fingerprint: Fingerprint


class McpEnvironment(ExternalEnvironment):
    """One episode at a time, in a session that begins with it."""

    name: ClassVar[str] = "mcp"
    version: ClassVar[str] = "1"
    reported: ClassVar[tuple[str, ...]] = ()

    def __init__(self, served: ServedTools) -> None:
        super().__init__(served.settings, self.name, served.numbers)
        self._served = served
        self._session: McpSession | None = None
        self._task: McpTask | None = None
        self._actions: ToolActions | None = None
        self._reward = 0.0
        self._done = False

    @property
    def title(self) -> str:
        return f"MCP {self._served.greeting.name or self._served.upstream.place}"

    def identity(self) -> dict[str, Any]:
        served = self._served
        parts = json.dumps(list(served.settings.splits.items()))
        return {
            "name": self.name,
            "version": self.version,
            "options": rules_of(served.settings),
            "server": {"name": served.greeting.name, "version": served.greeting.version},
            "splits_sha256": hashlib.sha256(parts.encode()).hexdigest(),
            "tasks_sha256": tasks_digest(served.tasks),
            "fingerprint": served.fingerprint.value,
        }

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Open a session; the server learns nothing of the task, and of `seed` neither."""
        del seed
        self._hang_up()
        self._task, self._reward, self._done = None, 0.0, False
        task = self._served.tasks[self._served.numbers[task_id]]
        settings = self._served.settings
        try:
            self._session = self._served.upstream.begin()
            greeting = self._session.greeting
            tools = chosen(greeting.tools, settings.tools)
            self._actions = ToolActions(tools, answers=task.answer is not None)
        except (McpSessionError, ValueError) as error:
            raise self._failed(error) from error
        self._task = task
        parts = (settings.instruction, greeting.instructions, task.instruction, self._actions.told)
        return "\n".join(part for part in parts if part), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._task is None:
            raise EpisodeError("reset the session before its first step")
        if self._done:
            return OVER, self._reward, True, False, {}
        assert self._session is not None
        assert self._actions is not None
        try:
            meant = self._actions.read(action)
            if isinstance(meant, FinalAnswer):
                right = self._task.is_answered_by(meant.text)
                return self._ended(_RIGHT if right else _WRONG, float(right))
            result = self._session.call(meant.name, meant.arguments)
        except NotAnActionError as error:
            return str(error), self._reward, False, False, {}
        except McpSessionError as error:
            raise self._failed(error) from error
        if not result.failed and self._task.is_reached_by(meant.name, result.text):
            return self._ended(result.text, 1.0)
        return result.text, self._reward, False, False, {}

    def close(self) -> None:
        self._hang_up()

    def _ended(self, text: str, reward: float) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._reward, self._done = reward, True
        self._hang_up()
        return text, reward, True, False, {}

    def _failed(self, error: Exception) -> EnvironmentFailure:
        """The episode's state is unknown: nobody continues with it."""
        self._task = None
        self._hang_up()
        return EnvironmentFailure(str(error))

    def _hang_up(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()
