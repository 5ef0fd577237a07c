"""Any environment as a `gymnasium.Env`, in this process and without a server.

    from agentc_backends.environments.gym import make

    env = make("env.textcraft", split="test", max_depth=2)

Rewards add up to the episode's reward, whatever the environment's `reward_kind` is. Nothing else of
the project imports this module; it needs gymnasium, and the environment's own software."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from agentc.backend_api import load_backends
from agentc.diagnostics import Sink
from agentc.diagnostics.render import render_text
from agentc.kinds.field import Json
from agentc.runtime.servers.job_leases import fill_placeholders
from agentc.serving.entry import typed_entry
from agentc_backends.environments.server.environment import (
    Environment,
    Expert,
    ExpertStep,
    floor_of,
    reward_after,
)
from agentc_backends.environments.server.program import NotInsideError, opener_of
from agentc_backends.environments.server.sessions import EnvironmentSession

_SAMPLED = string.ascii_letters + string.digits + string.punctuation + " "
_OPTIONS = ("task",)


class AnyText(spaces.Text):
    """Every text. What it samples is short and means nothing, as a random policy's actions do."""

    def __init__(self) -> None:
        super().__init__(64, min_length=0, charset=_SAMPLED)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def __repr__(self) -> str:
        return "AnyText()"


class TextEnvironment(gymnasium.Env[str, str]):
    """One episode at a time. `reset` takes a task by name in `options={"task": ...}`, else draws
    one of the split; its `seed`, 0 where there is none, is the environment's too."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        open_environment: Callable[[], Environment],
        *,
        split: str | None = None,
        max_turns: int | None = None,
        render_mode: str | None = None,
        spec: gymnasium.envs.registration.EnvSpec | None = None,
    ) -> None:
        """Raises ValueError for a split that the environment has not."""
        self._session = EnvironmentSession(0, open_environment())
        environment = self.environment
        self.split = environment.splits[0] if split is None else split
        if self.split not in environment.splits:
            names = ", ".join(environment.splits)
            raise ValueError(f"{environment.title} has no split {self.split!r}; it has {names}")
        self.max_turns = environment.default_max_steps if max_turns is None else max_turns
        self.observation_space = AnyText()
        self.action_space = AnyText()
        self.render_mode = render_mode
        self.spec = spec
        self._turns = 0
        self._score = 0.0

    @property
    def environment(self) -> Environment:
        """What it adapts: `name`, `reward_range`, `capabilities`, `identity()`, ..."""
        return self._session.environment

    def tasks(self, split: str | None = None) -> Sequence[str]:
        """The task ids of a split, by default of this one's, in a fixed order."""
        return self.environment.tasks(self.split if split is None else split)

    def expert(self, task: str, *, seed: int = 0) -> Sequence[ExpertStep]:
        """Steps with an `action` and a `thought` that solve the task."""
        self._demand("expert")
        return cast(Expert, self.environment).expert_steps(self._require_task(task), seed=seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Raises ValueError for a task or an option that does not exist."""
        super().reset(seed=seed)
        given = dict(options or {})
        task = given.pop("task", None)
        if given:
            names = ", ".join(map(repr, sorted(given)))
            raise ValueError(f"no option {names}; there is {', '.join(map(repr, _OPTIONS))}")
        if task is None:
            tasks = self.tasks()
            task = tasks[int(self.np_random.integers(len(tasks)))]
        self._session.reset(self._require_task(task), 0 if seed is None else seed)
        self._turns, self._score = 0, floor_of(self.environment.reward_range)
        return self._session.observation, {**self._session.info, "task": task}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Raises EpisodeError before the first reset, and EnvironmentFailure."""
        session = self._session
        session.step(action)
        before, self._turns = self._score, self._turns + 1
        earlier = None if self._turns == 1 else before
        self._score = reward_after(self.environment.reward_kind, earlier, session.reward)
        truncated = not session.done and self._turns >= self.max_turns
        info = {**session.info, "score": self._score}
        return session.observation, self._score - before, session.done, truncated, info

    def render(self) -> str:
        """The last observation."""
        return self._session.observation

    def snapshot(self) -> dict[str, Any]:
        """The whole episode as JSON values."""
        self._demand("snapshot")
        return {"session": self._session.snapshot(), "turns": self._turns, "score": self._score}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        self._demand("snapshot")
        match snapshot:
            case {"session": dict(state), "turns": int(turns), "score": (int() | float()) as score}:
                self._session.restore(state)
            case _:
                raise ValueError("not a snapshot of this environment")
        self._turns, self._score = turns, float(score)

    def close(self) -> None:
        if not self._session.closed:
            self._session.close()

    def _require_task(self, task: object) -> str:
        if not isinstance(task, str) or not self.environment.has_task(task):
            raise ValueError(f"{self.environment.title} has no task {task!r} with these settings")
        return task

    def _demand(self, capability: str) -> None:
        if capability not in self.environment.capabilities:
            title = self.environment.title
            raise NotImplementedError(f"{title} has no capability {capability!r}")


class SettingsError(ValueError):
    """The environment or a setting does not exist, or has a wrong value; the message is that of
    `agentc check`."""


def make(
    name: str,
    *,
    split: str | None = None,
    max_turns: int | None = None,
    render_mode: str | None = None,
    **settings: Json,
) -> TextEnvironment:
    """The environment of a backend (`env.textcraft`, `textcraft`) with the settings of its entry
    under `environments:`; relative paths start in the present directory.

    Episodes are truncated after `max_turns` actions, by default the environment's own limit. Raises
    SettingsError, and NotInsideError where the environment needs its server (`agentc serve`)
    or software that this Python lacks.
    """
    sink = Sink()
    written = [(key, json.dumps(value)) for key, value in settings.items()]
    entry = typed_entry(name, written, load_backends(), sink, directory=Path.cwd())
    if entry is None:
        raise SettingsError("\n" + render_text(sink.sorted()))
    backend = entry.backend
    if not entry.lease.inside:
        raise NotInsideError(
            f"{backend.id} cannot be opened in this process; `agentc serve "
            f"{backend.id.removeprefix('env.')}` starts its server"
        )
    words = {"{host}": "127.0.0.1", "{port}": "0", "{ready_file}": "none"}
    spec = EnvSpec(
        id=f"agentc/{backend.id}-v{backend.version}",
        entry_point="agentc_backends.environments.gym:make",
        kwargs={"name": name, "split": split, "max_turns": max_turns, **settings},
    )
    return TextEnvironment(
        opener_of(fill_placeholders(entry.lease.program, words), entry.lease.settings or None),
        split=split,
        max_turns=max_turns,
        render_mode=render_mode,
        spec=spec,
    )
