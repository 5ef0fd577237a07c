"""An environment of gymnasium's as one of agentc's: `environments.server` serves it like any other.

Its calls may take any time, so they block; what it raises is an EnvironmentFailure, which voids the
episode. After an episode's end it is not called: that is answered here."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
from gymnasium.error import Error

from agentc_backends.environments.external.environment import (
    ExternalEnvironment,
    NotAnActionError,
    RewardError,
    RunningScore,
)
from agentc_backends.environments.external.launch import ALLOW
from agentc_backends.environments.external.task_lists import task_numbers
from agentc_backends.environments.gymnasium.settings import GymnasiumSettings
from agentc_backends.environments.gymnasium.spaces import (
    Actions,
    actions_of,
    check_describable,
    observation_text,
    uncoloured,
)
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError
from agentc_backends.environments.server.settings import rules_of

_VALUED = ("value", "both")
OVER = "The episode is over; reset the session to start another."


@dataclass(frozen=True, slots=True)
class Facts:
    """What all episodes of a server share; `step_limit` is that of gymnasium's TimeLimit, None
    where there is none."""

    settings: GymnasiumSettings
    numbers: Mapping[str, int]
    actions: Actions
    step_limit: int | None


def facts_of(settings: GymnasiumSettings) -> Facts:
    """Make the environment once to look at it. Raises ValueError where it cannot be played in
    words."""
    probe = make_environment(settings)
    try:
        if settings.observation in _VALUED:
            check_describable(probe.observation_space)
        actions = actions_of(probe.action_space, settings.actions)
    except ValueError as error:
        raise ValueError(f"`{settings.id}`: {error}") from error
    finally:
        probe.close()
    limit = None if probe.spec is None else probe.spec.max_episode_steps
    numbers = task_numbers(settings.id, settings.splits)
    return Facts(settings, numbers, actions, limit if limit and limit > 0 else None)


class GymnasiumEnvironment(ExternalEnvironment):
    """One episode at a time, of an environment that is made at the first reset."""

    name: ClassVar[str] = "gymnasium"
    version: ClassVar[str] = "1"
    reported: ClassVar[tuple[str, ...]] = ("step_limit",)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts.settings, facts.settings.id, facts.numbers)
        self._facts = facts
        self._settings = facts.settings
        self._world: gymnasium.Env[Any, Any] | None = None
        self._score: RunningScore | None = None
        self._reward = 0.0
        self._done = False

    @property
    def title(self) -> str:
        return f"gymnasium {self._settings.id}"

    def identity(self) -> dict[str, Any]:
        parts = json.dumps(list(self._settings.splits.items()))
        return {
            "name": self.name,
            "version": self.version,
            "gymnasium": gymnasium.__version__,
            "options": rules_of(self._settings),
            "splits_sha256": hashlib.sha256(parts.encode()).hexdigest(),
        }

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start the task: `reset(seed=...)` with the task's number. An environment draws its start
        and its chances from that one number, so `seed` changes nothing."""
        del seed
        self._score, self._reward, self._done = None, 0.0, False
        try:
            if self._world is None:
                self._world = make_environment(self._settings)
            observation, info = self._world.reset(seed=self._facts.numbers[task_id])
            text = self._text(observation, info)
        except Exception as error:
            raise self._failed("reset", error) from error
        self._score = RunningScore(self._rule)
        parts = (self._settings.instruction, text, self._facts.actions.told)
        limit = self._facts.step_limit
        first = "\n".join(part for part in parts if part)
        return first, {} if limit is None else {"step_limit": limit}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._world is None or self._score is None:
            raise EpisodeError("reset the session before its first step")
        if self._done:
            return OVER, self._reward, True, False, {}
        try:
            meant = self._facts.actions.read(action)
        except NotAnActionError as refused:
            return str(refused), self._reward, False, False, {}
        try:
            observation, reward, terminated, truncated, info = self._world.step(meant)
            text = self._text(observation, info)
            score = self._score.after(_finite(reward))
        except Exception as error:
            raise self._failed("step", error) from error
        self._reward, self._done = score, bool(terminated or truncated)
        return text, score, bool(terminated), bool(truncated), {}

    def close(self) -> None:
        world, self._world, self._score = self._world, None, None
        if world is not None:
            # What it raises here concerns nobody's episode.
            with suppress(Exception):
                world.close()

    def _text(self, observation: Any, info: Mapping[str, Any]) -> str:
        settings = self._settings
        assert self._world is not None
        parts = []
        if settings.observation in _VALUED:
            parts.append(observation_text(observation, settings.digits))
        if settings.observation in RENDERED:
            rendered = self._world.render()
            if not isinstance(rendered, str):
                raise TypeError(f"render() gives {type(rendered).__name__}, not a text")
            parts.append(uncoloured(rendered, settings.colours))
        parts += [
            f"{n}: {observation_text(info[n], settings.digits)}" for n in settings.info if n in info
        ]
        return "\n".join(parts)

    def _failed(self, call: str, error: Exception) -> EnvironmentFailure:
        """The world's state is unknown: the next episode gets another one."""
        self.close()
        if isinstance(error, RewardError):
            return EnvironmentFailure(str(error))
        return EnvironmentFailure(f"{call} raises {type(error).__name__}: {error}")


def _finite(reward: Any) -> float:
    number = float(reward)
    if not math.isfinite(number):
        raise RewardError(f"the reward of a step is {number}")
    return number


# An id may name a module, which gymnasium then imports: code of a spec's choice, as a command is.
# It runs only where the person who runs agentc says so (`external/launch.py`).

RENDERED = ("ansi", "both")
"""Ways of telling an observation that need the environment to render it."""
_OWN = "gymnasium.envs."


def make_environment(settings: GymnasiumSettings) -> gymnasium.Env[Any, Any]:
    """A new environment. Raises ValueError, with what a person can mend."""
    check_allowed(settings.id)
    rendered = {"render_mode": "ansi"} if settings.observation in RENDERED else {}
    arguments: Mapping[str, Any] = {**settings.kwargs, **rendered}
    try:
        found = gymnasium.make(settings.id, disable_env_checker=True, **arguments)
    except Exception as error:  # whatever its constructor raises
        why = str(error) or type(error).__name__
        raise ValueError(f"`{settings.id}` cannot be made: {why}") from error
    modes = found.metadata.get("render_modes", [])
    if rendered and "ansi" not in modes:
        raise ValueError(
            f"`{settings.id}` renders no text (its modes are {', '.join(modes) or 'none'}): take "
            "`observation: value`"
        )
    return found


def check_allowed(id: str) -> None:
    """Raises ValueError where code that is not gymnasium's own would run, and nobody allowed it."""
    if os.environ.get(ALLOW) == "1":
        return
    module, _, name = id.rpartition(":")
    whose = f"the module `{module}`"
    if not module:
        try:
            entry = gymnasium.spec(name).entry_point
        except Error as error:
            raise ValueError(str(error)) from error
        if isinstance(entry, str) and entry.startswith(_OWN):
            return
        whose = f"`{entry}`"
    raise ValueError(
        f"the environment `{id}` is code of {whose}, not of gymnasium itself\n"
        f"If you trust it, export {ALLOW}=1 in the shell that runs agentc."
    )
