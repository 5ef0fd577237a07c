"""ScienceWorld as an environment of `environments.server`: an episode is a variation of a task.

Rewards are the simulator's score over 100. A wrong focus is fatal: the simulator scores -100 and
the episode is over. An episode is a function of its task and actions, so a fork replays the
actions on another simulation and proves by their answers that it reached the same state."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from agentc_backends.environments.sciworld.jvm import Simulation, SimulatorTurn
from agentc_backends.environments.sciworld.pool import JvmPool
from agentc_backends.environments.sciworld.settings import SciworldSettings, Text, task_ids
from agentc_backends.environments.sciworld.snap import snap
from agentc_backends.environments.sciworld.tasks import (
    MOST_STEPS,
    UNIFORM_LIMIT,
    Task,
    agentgym_tasks,
    split_task_id,
    step_limit,
    task_id,
)
from agentc_backends.environments.server.environment import (
    Answer,
    Dialect,
    EnvironmentFailure,
    EpisodeError,
)
from agentc_backends.environments.server.world import ExpertAction

# AgentGym's released client joins the task's description and the room's itself, and reads `score`.


def _opened(answer: Answer) -> object:
    room = str(answer["observation"]).removeprefix(f"{answer['task_description']}\n")
    # The released server looks around by a step, whose texts end without a newline.
    return {**answer, "observation": room.rstrip("\n")}


SCIWORLD = Dialect(bodiless_create=True, opened=_opened)


# Gold paths are the actions of the simulator's own agent. One takes about a second, so each is
# computed once, when a job first needs it.


class GoldPaths:
    """Gold paths by task id; any thread may ask."""

    def __init__(self, pool: JvmPool, simplifications: str, *, thoughts: bool) -> None:
        self._pool = pool
        self._simplifications = simplifications
        self._thoughts = thoughts
        self._known: dict[str, tuple[ExpertAction, ...]] = {}
        self._lock = threading.Lock()

    def path(self, task: Task, variation: int) -> tuple[ExpertAction, ...]:
        """Raises EnvironmentFailure."""
        key = task_id(task.name, variation)
        with self._lock:
            known = self._known.get(key)
        if known is None:
            simulation = self._pool.acquire()
            try:
                actions = simulation.gold_path(task.name, variation, self._simplifications)
            finally:
                self._pool.release(simulation)
            known = tuple(ExpertAction(a, _thought(a) if self._thoughts else "") for a in actions)
            with self._lock:
                self._known[key] = known
        return known


def _thought(action: str) -> str:
    return "I need to wait." if action.startswith("wait") else f"I need to {action}."


_OVER = "The episode is over."
_MOST_ACTIONS = 10_000


class ScienceWorldShared:
    """What the episodes of a server share: JVMs, settings, splits and gold paths."""

    def __init__(
        self, pool: JvmPool, settings: SciworldSettings, splits: Mapping[str, Text]
    ) -> None:
        self.pool = pool
        self.settings = settings
        self.splits = {name: task_ids(text) for name, text in splits.items()}
        self.kept = frozenset(task for tasks in self.splits.values() for task in tasks)
        self.gold = GoldPaths(
            pool, settings.simplified, thoughts=settings.expert_thoughts == "plain"
        )
        self.numbered = agentgym_tasks()


class ScienceWorldEnvironment:
    """One episode at a time, on a simulation that is lent for as long as it is open."""

    name: ClassVar[str] = "sciworld"
    title: ClassVar[str] = "ScienceWorld"
    version: ClassVar[str] = "1"
    success_threshold: ClassVar[float] = 1.0
    capabilities: ClassVar[frozenset[str]] = frozenset({"expert", "fork", "snapshot"})
    blocking: ClassVar[bool] = True
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = (
        "task_name",
        "var_num",
        "task_description",
        "score",
        "step_limit",
    )
    dialect: ClassVar[Dialect] = SCIWORLD

    def __init__(self, world: ScienceWorldShared) -> None:
        self._world = world
        self._simulation: Simulation | None = None
        self._task: tuple[Task, int] | None = None
        self._actions: list[str] = []
        self._digest = ""
        self._done = False
        self._score = 0

    @property
    def reward_range(self) -> tuple[float, float]:
        return (-1.0 if self._world.settings.negative == "keep" else 0.0, 1.0)

    @property
    def reward_kind(self) -> str:
        return "max" if self._world.settings.score == "best" else "latest"

    @property
    def default_max_steps(self) -> int:
        return MOST_STEPS if self._world.settings.step_limit == "per_task" else UNIFORM_LIMIT

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._world.splits)

    def tasks(self, split: str) -> Sequence[str]:
        return self._world.splits[split]

    def has_task(self, task_id: str) -> bool:
        return task_id in self._world.kept or split_task_id(task_id) is not None

    def numbered_tasks(self) -> Sequence[str]:
        return self._world.numbered

    def identity(self) -> dict[str, Any]:
        tasks = json.dumps(self._world.splits, sort_keys=True)
        return {
            "name": self.name,
            "version": self.version,
            "simulator": version("scienceworld"),
            "options": self._world.settings.rules(),
            "tasks_sha256": hashlib.sha256(tasks.encode()).hexdigest(),
        }

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a variation; the simulator knows no seed but the variation."""
        found = split_task_id(task_id)
        if found is None:
            raise EpisodeError(f"ScienceWorld has no task {task_id!r}")
        task, variation = found
        self.close()
        simulation = self._world.pool.acquire()
        self._simulation = simulation
        description, room = simulation.load(task.name, variation, self._world.settings.simplified)
        self._task, self._actions = found, []
        self._done, self._score = False, 0
        both = f"{description}\n{room}"
        self._digest = hashlib.sha256(both.encode()).hexdigest()
        observation = description if self._world.settings.opening == "task" else both
        info: dict[str, Any] = {
            "task_name": task.name,
            "var_num": variation,
            "task_description": description,
            "score": 0,
        }
        limit = step_limit(task, self._world.settings.step_limit)
        return observation, info if limit is None else {**info, "step_limit": limit}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        simulation, (task, _) = self._open()
        if self._done:
            return _OVER, self._reward(), True, False, {"score": self._score}
        if self._world.settings.snap_actions:
            action = snap(action, simulation.legal_actions())
        turn = self._advance(simulation, action)
        limit = step_limit(task, self._world.settings.step_limit)
        over = turn.completed or turn.score < 0
        cut = not over and limit is not None and len(self._actions) >= limit
        self._done = over or cut
        return turn.observation, self._reward(), over, cut, {"score": self._score}

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ExpertAction, ...]:
        found = split_task_id(task_id)
        if found is None:
            raise EpisodeError(f"ScienceWorld has no task {task_id!r}")
        return self._world.gold.path(*found)

    def snapshot(self) -> dict[str, Any]:
        """The actions so far, and a digest of all that was answered to them."""
        _, (task, variation) = self._open()
        return {
            "environment": self.name,
            "version": 1,
            "task": [task.name, variation],
            "actions": list(self._actions),
            "digest": self._digest,
            "done": self._done,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Replay a snapshot's actions. Raises EnvironmentFailure where the simulator answers
        otherwise than it did, for then it cannot be brought to that state."""
        match snapshot:
            case {
                "environment": self.name,
                "version": 1,
                "task": [str(name), int(variation)],
                "actions": list(actions),
                "digest": str(digest),
                "done": bool(done),
            } if len(actions) <= _MOST_ACTIONS and all(isinstance(a, str) for a in actions):
                identity = f"{name}:{variation}"
            case _:
                raise ValueError("not a snapshot of a ScienceWorld episode")
        if split_task_id(identity) is None:
            raise ValueError("a snapshot of no task of ScienceWorld")
        self.reset(identity)
        simulation, _ = self._open()
        for action in actions:
            self._advance(simulation, action)
        self._done = done
        if self._digest != digest:
            self.close()
            raise EnvironmentFailure(
                f"after {len(actions)} actions the simulator is not where the snapshot of "
                f"{identity} was taken"
            )

    def close(self) -> None:
        if self._simulation is not None:
            self._world.pool.release(self._simulation)
        self._simulation = None

    def _advance(self, simulation: Simulation, action: str) -> SimulatorTurn:
        turn = simulation.step(action)
        self._actions.append(action)
        self._score = turn.score
        seen = f"{self._digest}\n{turn.observation}\n{turn.score}\n{turn.completed}"
        self._digest = hashlib.sha256(seen.encode()).hexdigest()
        return turn

    def _reward(self) -> float:
        if self._score < 0:
            return -1.0 if self._world.settings.negative == "keep" else 0.0
        return self._score / 100

    def _open(self) -> tuple[Simulation, tuple[Task, int]]:
        if self._simulation is None or self._task is None:
            raise EpisodeError("reset the session before using it")
        return self._simulation, self._task
