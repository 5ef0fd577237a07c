"""An OpenEnv server as an environment of agentc: `environments.server` serves it like any other.

An episode has a connection of its own, and with it an environment of its own on the server; it is
closed as soon as the episode is over, for servers hold few. Calls wait, so they block; what fails
is an EnvironmentFailure, which voids the episode.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agentc_backends.environments.external.environment import (
    ExternalEnvironment,
    NotAnActionError,
    RewardError,
    RunningScore,
)
from agentc_backends.environments.external.task_lists import Fingerprint
from agentc_backends.environments.openenv.connection import (
    Conversation,
    OpenEnvError,
    OpenEnvReplyError,
    OpenEnvUpstream,
)
from agentc_backends.environments.openenv.settings import OpenEnvSettings
from agentc_backends.environments.openenv.translation import (
    JsonAction,
    Observed,
    ReplyError,
    TextAction,
    read_observed,
)
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError
from agentc_backends.environments.server.settings import rules_of

OVER = "The episode is over; reset the session to start another."
_NAME = "openenv"
_MALFORMED = "VALIDATION_ERROR"


@dataclass(frozen=True, slots=True)
class Served:
    """What all episodes of a server share. `about` is what GET /metadata says of it."""

    upstream: OpenEnvUpstream
    settings: OpenEnvSettings
    actions: TextAction | JsonAction
    about: Mapping[str, Any]
    numbers: Mapping[str, int]
    fingerprint: Fingerprint

    def reset(self, number: int) -> tuple[Conversation, Observed]:
        """A new episode of a task. Raises OpenEnvError, ReplyError."""
        settings = self.settings
        data = {**settings.reset, settings.task_field: number}
        conversation, answer = self.upstream.begin(data)
        try:
            return conversation, read_observed(answer, settings.observation_fields)
        except ReplyError:
            conversation.close()
            raise

    def first_text(self, number: int) -> str:
        """What a task begins with. Raises OpenEnvError, ReplyError."""
        conversation, observed = self.reset(number)
        conversation.close()
        return observed.text


class OpenEnvEnvironment(ExternalEnvironment):
    """One episode at a time, on a connection of its own."""

    name: ClassVar[str] = _NAME
    version: ClassVar[str] = "1"
    reported: ClassVar[tuple[str, ...]] = ()

    def __init__(self, served: Served) -> None:
        super().__init__(served.settings, _NAME, served.numbers)
        self._served = served
        self._settings = served.settings
        self._conversation: Conversation | None = None
        self._score: RunningScore | None = None
        self._reward = 0.0
        self._done = False

    @property
    def title(self) -> str:
        return f"OpenEnv {self._served.about.get('name', self._served.upstream.url)}"

    def identity(self) -> dict[str, Any]:
        served = self._served
        parts = json.dumps(list(self._settings.splits.items()))
        return {
            "name": self.name,
            "version": self.version,
            "options": rules_of(self._settings),
            "server": {key: served.about.get(key) for key in ("name", "version")},
            "splits_sha256": hashlib.sha256(parts.encode()).hexdigest(),
            "fingerprint": served.fingerprint.value,
            "probes": list(served.fingerprint.probes),
        }

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a task, whose number goes to the server; `seed` changes nothing."""
        del seed
        self._hang_up()
        self._score, self._reward, self._done = None, 0.0, False
        try:
            self._conversation, observed = self._served.reset(self._served.numbers[task_id])
        except (OpenEnvError, ReplyError) as error:
            raise EnvironmentFailure(str(error)) from error
        self._score = RunningScore(self._rule)
        parts = (self._settings.instruction, observed.text, self._served.actions.told)
        return "\n".join(part for part in parts if part), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._score is None:
            raise EpisodeError("reset the session before its first step")
        if self._done:
            return OVER, self._reward, True, False, {}
        assert self._conversation is not None
        try:
            meant = self._served.actions.read(action)
            answer = self._conversation.ask("step", meant)
            observed = read_observed(answer, self._settings.observation_fields)
            score = self._score.after(observed.reward)
        except NotAnActionError as error:
            return str(error), self._reward, False, False, {}
        except OpenEnvReplyError as error:
            if error.code == _MALFORMED or self._settings.step_errors == "observation":
                return error.message, self._reward, False, False, {}
            raise self._failed(error) from error
        except (OpenEnvError, ReplyError, RewardError) as error:
            raise self._failed(error) from error
        self._reward, self._done = score, observed.done
        if self._done:
            self._hang_up()
        return observed.text, score, self._done, False, {}

    def close(self) -> None:
        self._hang_up()

    def _failed(self, error: Exception) -> EnvironmentFailure:
        """The episode's state is unknown: nobody continues with it."""
        self._score = None
        self._hang_up()
        return EnvironmentFailure(str(error))

    def _hang_up(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            # It waits for the server, which may be the one that hangs.
            threading.Thread(target=conversation.close, name="hang up", daemon=True).start()
