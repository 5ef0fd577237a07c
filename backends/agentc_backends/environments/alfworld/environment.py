"""ALFWorld as an environment: tasks, texts, experts and snapshots around `play.py`.

A task is a game, `<task>/<trial>`. The environment never truncates: the episode limit belongs to
the rollout. Sessions of a server share the games."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agentc_backends.environments.alfworld.expert import plan, recorded
from agentc_backends.environments.alfworld.games import HouseholdGame
from agentc_backends.environments.alfworld.play import WORDINGS, Play, is_reached
from agentc_backends.environments.alfworld.settings import AlfworldSettings
from agentc_backends.environments.server.environment import (
    Answer,
    Dialect,
    EpisodeError,
    MemoryEnvironment,
)
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.world import ExpertAction

# For AgentGym's released client tasks are a `game`, counted as the server lists them, and replies
# name the actions that are legal. It sends a `world_type`, which means nothing here: all worlds are
# text.


def _extras(environment: Any) -> Answer:
    return {"available_actions": environment.legal_actions()}


def _available_actions(environment: Any) -> object:
    return environment.legal_actions()


ALFWORLD = Dialect(
    task_field="game",
    bodiless_create=True,
    extras=_extras,
    queries={"/available_actions": _available_actions},
)


@dataclass(frozen=True)
class Tasks:
    """The games of each split, digests of the files they come from, and what the splits are."""

    splits: Mapping[str, tuple[HouseholdGame, ...]]
    files: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_id = {game.task_id: game for games in self.splits.values() for game in games}
        object.__setattr__(self, "by_id", by_id)

    by_id: Mapping[str, HouseholdGame] = field(init=False, default_factory=dict)


class AlfworldEnvironment(MemoryEnvironment):
    """One episode at a time; build it once and reset it for each attempt."""

    name = "alfworld"
    title = "ALFWorld"
    version = "1"
    default_max_steps: ClassVar[int] = 40
    capabilities: ClassVar[frozenset[str]] = frozenset({"expert", "fork", "snapshot"})
    dialect: ClassVar[Dialect] = ALFWORLD

    def __init__(self, tasks: Tasks, settings: AlfworldSettings) -> None:
        self._tasks = tasks
        self._settings = settings
        self._wording = WORDINGS[settings.wording]
        self._task_id = ""
        self._play: Play | None = None
        self._actions: list[str] = []
        self._done = False

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._tasks.splits)

    def tasks(self, split: str) -> tuple[str, ...]:
        return tuple(game.task_id for game in self._tasks.splits[split])

    def has_task(self, task_id: str) -> bool:
        return task_id in self._tasks.by_id

    def numbered_tasks(self) -> Sequence[str]:
        return tuple(self._tasks.by_id)

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a game; it has no chance in it, so that the seed changes nothing."""
        del seed
        self._start(task_id)
        description = self._tasks.by_id[task_id].description
        return f"{self._episode().opening()}\n\n{description}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action: observation, reward, terminated, truncated (never), info."""
        was_done = self._done
        observation = self._act(action)
        reward = 1.0 if self._done and not was_done and is_reached(self._episode()) else 0.0
        if self._settings.shorten_arrivals and observation.startswith("You arrive at "):
            observation = observation.partition(". ")[2]
        return observation, reward, self._done, False, {}

    def legal_actions(self) -> list[str]:
        """In the order of TextWorld's list of admissible commands, which is sorted."""
        return sorted(self._episode().legal())

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ExpertAction, ...]:
        """The expert's actions, with thoughts; the same for every seed."""
        del seed
        game = self._tasks.by_id[task_id]
        if self._settings.expert == "explorer":
            return plan(game.house(), self._wording, knows_all=False)
        if game.walkthrough:
            return recorded(game.house(), game.walkthrough, self._wording)
        return plan(game.house(), self._wording, knows_all=True)

    def snapshot(self) -> dict[str, Any]:
        """The task and the actions that led here: playing them again takes microseconds."""
        self._episode()
        return {
            "environment": self.name,
            "version": 1,
            "task_id": self._task_id,
            "actions": list(self._actions),
            "done": self._done,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        match snapshot:
            case {
                "environment": self.name,
                "version": 1,
                "task_id": str(task_id),
                "actions": [*actions],
                "done": bool(done),
            } if self.has_task(task_id) and all(isinstance(each, str) for each in actions):
                replayed = AlfworldEnvironment(self._tasks, self._settings)
            case _:
                raise ValueError("not a snapshot of an ALFWorld episode with these options")
        replayed._start(task_id)
        for action in actions:
            replayed._act(action)
        refused = done and self._settings.end_on_refusal
        if replayed._actions != actions or (replayed._done != done and not refused):
            raise ValueError("the actions of this snapshot do not lead to its state")
        self._task_id, self._play = task_id, replayed._play
        self._actions, self._done = replayed._actions, done

    def identity(self) -> dict[str, Any]:
        """Everything that decides tasks, texts and rewards, as JSON values."""
        listed = "\n".join(f"{name} {task}" for name in self.splits for task in self.tasks(name))
        return {
            "name": self.name,
            "version": self.version,
            "options": rules_of(self._settings),
            "splits": dict(self._tasks.lines),
            "files": dict(self._tasks.files),
            "tasks_sha256": hashlib.sha256(listed.encode()).hexdigest(),
        }

    def _start(self, task_id: str) -> None:
        play = Play(self._tasks.by_id[task_id].house(), self._wording)
        self._task_id, self._play, self._actions = task_id, play, []
        self._done = is_reached(play)

    def _act(self, action: str) -> str:
        play = self._episode()
        observation, legal = play.act(action)
        if legal and not action.startswith(("look", "inventory", "examine", "help")):
            self._actions.append(action)
        refused = not legal and self._settings.end_on_refusal
        self._done = self._done or refused or is_reached(play)
        return observation

    def _episode(self) -> Play:
        if self._play is None:
            raise EpisodeError("reset the environment before stepping it")
        return self._play
