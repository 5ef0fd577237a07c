"""What both of ColBench's environments are, whatever their dialogues are about: tasks and splits of
a server, its identity, and one episode at a time that can be saved and gone on with.

`environment.py` judges code by tests, `frontend/environment.py` pages by their likeness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from agentc_backends.environments.colbench.dialogue import DialogueTask
from agentc_backends.environments.server.environment import EpisodeError
from agentc_backends.environments.server.settings import rules_of

OVER = "The episode is over."
THANKS = "Thank you."


class PlayedSettings(Protocol):
    """Of both environments."""

    @property
    def rounds(self) -> int: ...
    @property
    def is_invented(self) -> bool: ...
    @property
    def human_prompt_sha256(self) -> str | None: ...


class SavedDialogue(Protocol):
    """An episode that can be written down."""

    def saved(self) -> dict[str, Any]: ...


TaskT = TypeVar("TaskT", bound=DialogueTask)
EpisodeT = TypeVar("EpisodeT", bound=SavedDialogue)


class PlayedTasks(Generic[TaskT]):
    """The tasks that the episodes of a server share, and who of them can be solved by an expert;
    they never change."""

    def __init__(
        self,
        settings: PlayedSettings,
        splits: Mapping[str, Sequence[TaskT]],
        invented: Collection[str],
        digest: Callable[[Mapping[str, Sequence[TaskT]]], str],
    ) -> None:
        self.splits = {name: tuple(task.id for task in tasks) for name, tasks in splits.items()}
        self.tasks = {task.id: task for tasks in splits.values() for task in tasks}
        self.numbered = tuple(self.tasks)
        self.digest = digest(splits)
        self.rules, self.has_expert = settings, bool(invented)


class DialogueEnvironment(Generic[TaskT, EpisodeT]):
    """One episode at a time."""

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str] = "1"
    reward_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reward_kind: ClassVar[str] = "terminal"
    blocking: ClassVar[bool] = True
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ("step_limit", "report")

    def __init__(self, played: PlayedTasks[TaskT]) -> None:
        self._played = played
        self._episode: EpisodeT | None = None

    @property
    def default_max_steps(self) -> int:
        return self._played.rules.rounds

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._played.splits)

    @property
    def capabilities(self) -> frozenset[str]:
        # Nobody writes an expert for real tasks: one that reads the reference would leak it.
        own = {"expert"} if self._played.has_expert else set()
        return frozenset({"fork", "snapshot", "privileged", *own})

    def tasks(self, split: str) -> Sequence[str]:
        return self._played.splits[split]

    def has_task(self, task_id: str) -> bool:
        return task_id in self._played.tasks

    def numbered_tasks(self) -> Sequence[str]:
        return self._played.numbered

    def identity(self) -> dict[str, Any]:
        rules = self._played.rules
        return {
            "name": self.name,
            "version": self.version,
            "options": {**rules_of(rules), "invented": rules.is_invented},
            "tasks_sha256": self._played.digest,
            "human_prompt_sha256": rules.human_prompt_sha256,
        }

    def snapshot(self) -> dict[str, Any]:
        """The whole episode as JSON values. The task is named by its id: nothing of its reference
        is in it."""
        return {"environment": self.name, "version": 1, **self._started().saved()}

    def close(self) -> None:
        """An episode holds memory only."""

    def _saved_task(self, snapshot: Mapping[str, Any]) -> TaskT:
        """The task of a snapshot. Raises ValueError where it is none of this environment."""
        match snapshot:
            case {"environment": self.name, "version": 1, "task_id": str(task_id)} if (
                task_id in self._played.tasks
            ):
                return self._played.tasks[task_id]
        raise ValueError(f"not a snapshot of {self.title} with these options")

    def _started(self) -> EpisodeT:
        if self._episode is None:
            raise EpisodeError("reset the environment before stepping it")
        return self._episode
