"""TextWorld: the members that most environments have alike; a world of one's own adds its rules.

For a world without anything to wait for; others follow `environment.py` by themselves. Neighbours:
`settings.py` declares what a spec may say of it, `program.py` serves it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from agentc_backends.environments.server.environment import EpisodeError, MemoryEnvironment
from agentc_backends.environments.server.settings import rules_of


class ExpertAction(NamedTuple):
    """One action of an expert, and why."""

    action: str
    thought: str = ""


class TextWorld(MemoryEnvironment, ABC):
    """`name`, `begin` and `act` are the author's to write. `expert_steps` makes it an expert too;
    `hidden_text` tells a critic's training what agents may not see;
    `save` and `load` let searches copy its state; `seeded` says that `begin` heeds its seed.

    `task_lists` has the task ids of each split. `settings`, a dataclass of `setting`s, decide texts
    and rewards besides the version: a change of the rules is another `version`.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    default_max_steps: ClassVar[int] = 30
    seeded: ClassVar[bool] = False

    def __init__(self, task_lists: Mapping[str, Sequence[str]], settings: Any) -> None:
        self._lists = {split: tuple(tasks) for split, tasks in task_lists.items()}
        self._settings = settings
        self._task: str | None = None
        self._done = False

    @abstractmethod
    def begin(self, task_id: str, seed: int) -> str:
        """Start a task: its first text."""

    @abstractmethod
    def act(self, action: str) -> tuple[str, float, bool]:
        """What the world answers, its reward, and whether the episode is over. An action that makes
        no sense is answered too."""

    def save(self) -> dict[str, Any]:
        """The state as JSON values; what the settings decide need not be in it."""
        raise NotImplementedError

    def load(self, task_id: str, state: Mapping[str, Any]) -> None:
        """Go on from a saved state. A malformed one raises ValueError before anything changes."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._lists)

    @property
    def capabilities(self) -> frozenset[str]:
        held = {"seed"} if self.seeded else set()
        if hasattr(self, "expert_steps"):
            held.add("expert")
        if hasattr(self, "hidden_text"):
            held.add("privileged")
        if type(self).save is not TextWorld.save:
            held |= {"fork", "snapshot"}
        return frozenset(held)

    def tasks(self, split: str) -> tuple[str, ...]:
        return self._lists[split]

    def has_task(self, task_id: str) -> bool:
        return any(task_id in tasks for tasks in self._lists.values())

    def numbered_tasks(self) -> tuple[str, ...]:
        return tuple(task for tasks in self._lists.values() for task in tasks)

    def identity(self) -> dict[str, Any]:
        options = rules_of(self._settings)
        return {"name": self.name, "version": self.version, "options": options}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        text = self.begin(task_id, seed)
        self._task, self._done = task_id, False
        return text, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._task is None:
            raise EpisodeError("there is no episode yet: reset first")
        if self._done:
            return "The episode is over.", 0.0, True, False, {}
        text, reward, self._done = self.act(action)
        return text, reward, self._done, False, {}

    def snapshot(self) -> dict[str, Any]:
        if self._task is None:
            raise EpisodeError("there is no episode yet: reset first")
        return {"task": self._task, "done": self._done, "state": self.save()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        match snapshot:
            case {"task": str(task), "done": bool(done), "state": dict(state)} if self.has_task(
                task
            ):
                self.load(task, state)
            case _:
                raise ValueError(f"not a snapshot of {self.title}")
        self._task, self._done = task, done
