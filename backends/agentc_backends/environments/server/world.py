"""TextWorld: what most environments have in common; a world adds its rules to it.

For a world in memory, whose calls are quick; others follow `environment.py` themselves.
`settings.py` declares what a spec may say of a world, `program.py` serves it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentc_backends.environments.server.environment import EpisodeError, MemoryEnvironment
from agentc_backends.environments.server.settings import rules_of


class ExpertAction(NamedTuple):
    """One action of an expert, and why."""

    action: str
    thought: str = ""


@dataclass(frozen=True, slots=True)
class TaskLists:
    """The task ids of each split, in order; built once and shared by the sessions of a server."""

    splits: Mapping[str, tuple[str, ...]]
    known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = frozenset(task for tasks in self.splits.values() for task in tasks)
        object.__setattr__(self, "known", known)


class TextWorld(MemoryEnvironment, ABC):
    """`name`, `begin` and `act` are the author's to write. `expert_steps` makes it an expert too;
    `hidden_text` tells a critic's training what agents may not see; `save` and `load` let searches
    copy its state; `seeded` says that `begin` heeds its seed.

    `task_lists` has the task ids of each split. `settings`, a dataclass of `setting`s, decide texts
    and rewards besides the version: a change of the rules is another `version`. A world that ends
    its episodes after `default_max_steps` actions reports `step_limit`.
    """

    name: str
    version: str = "1"
    default_max_steps: int = 30
    seeded: bool = False
    over: str = "The episode is over."
    """What it answers after the end."""
    answers_after_end: bool = False
    """Whether `act` answers after the end too, instead of `over`."""

    def __init__(self, task_lists: TaskLists | Mapping[str, Sequence[str]], settings: Any) -> None:
        self._lists = (
            task_lists
            if isinstance(task_lists, TaskLists)
            else TaskLists({split: tuple(tasks) for split, tasks in task_lists.items()})
        )
        self._settings = settings
        self._task: str | None = None
        self._seed = 0
        self._done = False

    @abstractmethod
    def begin(self, task_id: str, seed: int) -> str:
        """Start a task: its first text."""

    @abstractmethod
    def act(self, action: str) -> tuple[str, float, bool]:
        """What the world answers, its reward, and whether the episode is over. An action that makes
        no sense is answered too."""

    def save(self) -> dict[str, Any]:
        """The state as JSON values, without task, seed and whether the episode is over; what the
        settings decide need not be in it."""
        raise NotImplementedError

    def load(self, task_id: str, state: Mapping[str, Any]) -> None:
        """Continue from what `save` gave; `state` has `seed` (of a seeded world) and `done` too. A
        malformed one raises ValueError, `malformed()` say, before anything changes."""
        raise NotImplementedError

    def info(self) -> dict[str, Any]:
        """Values beside each text; clients receive those that `reported` names."""
        return {}

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._lists.splits)

    @property
    def capabilities(self) -> frozenset[str]:
        held = {"seed"} if self.seeded else set()
        if hasattr(self, "expert_steps"):
            held.add("expert")
        if hasattr(self, "hidden_text"):
            held.add("privileged")
        if self._can_save():
            held |= {"fork", "snapshot"}
        return frozenset(held)

    def tasks(self, split: str) -> tuple[str, ...]:
        if split not in self._lists.splits:
            raise KeyError(f"{self.title} has no split {split!r}; it has {', '.join(self.splits)}")
        return self._lists.splits[split]

    def has_task(self, task_id: str) -> bool:
        return task_id in self._lists.known

    def numbered_tasks(self) -> Sequence[str]:
        """Those of the first split, then those of the next one."""
        return tuple(task for tasks in self._lists.splits.values() for task in tasks)

    def identity(self) -> dict[str, Any]:
        options = rules_of(self._settings)
        return {"name": self.name, "version": self.version, "options": options}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        text = self.begin(self.require_task(task_id), seed)
        self._task, self._seed, self._done = task_id, seed, False
        limit = {"step_limit": self.default_max_steps} if "step_limit" in self.reported else {}
        return text, {**self.info(), **limit}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.episode_task()
        if self._done and not self.answers_after_end:
            return self.over, 0.0, True, False, {}
        text, reward, self._done = self.act(action)
        return text, reward, self._done, False, self.info()

    def snapshot(self) -> dict[str, Any]:
        seed = {"seed": self._seed} if self.seeded else {}
        return {
            "environment": self.name,
            "version": 1,
            "task_id": self.episode_task(),
            **seed,
            **self.save(),
            "done": self._done,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        seed = snapshot.get("seed") if self.seeded else 0
        match snapshot:
            case {
                "environment": self.name,
                "version": 1,
                "task_id": str(task_id),
                "done": bool(done),
            } if self.has_task(task_id) and isinstance(seed, int):
                self.load(task_id, snapshot)
            case _:
                raise self.malformed()
        self._task, self._seed, self._done = task_id, seed, done

    def require_task(self, task_id: str) -> str:
        """The task's id. Raises KeyError for none of the tasks."""
        if not self.has_task(task_id):
            raise KeyError(f"{self.title} has no task {task_id!r} with these options")
        return task_id

    def episode_task(self) -> str:
        """The task that is being played. Raises EpisodeError before the first reset."""
        if self._task is None:
            raise EpisodeError("reset the environment before stepping it")
        return self._task

    def malformed(self) -> ValueError:
        """Says that something is no snapshot of this world."""
        return ValueError(f"not a snapshot of a {self.title} episode with these options")

    def _can_save(self) -> bool:
        return type(self).save is not TextWorld.save
