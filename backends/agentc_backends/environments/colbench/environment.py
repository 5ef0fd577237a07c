"""ColBench's programming tasks as an environment: an agent asks a human, and answers with code.

An action is a whole reply. The human, who knows the reference, replies to all that hold no answer;
the answer runs against the task's tests in a box. Neighbours: `judging.py`, `humans/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from agentc.runtime.sandbox.process import BoxError
from agentc_backends.environments.code_tests.suite import score
from agentc_backends.environments.colbench.episode import CodeDialogue, restored
from agentc_backends.environments.colbench.humans.human import Human
from agentc_backends.environments.colbench.invented import InventedTask
from agentc_backends.environments.colbench.judging import AnswerJudge
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, digest
from agentc_backends.environments.server.environment import (
    EnvironmentFailure,
    EpisodeError,
    HiddenText,
)
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.world import ExpertAction

_OVER = "The episode is over."
_THANKS = "Thank you."


class ColBenchShared:
    """What the episodes of a server share; it never changes."""

    def __init__(
        self,
        settings: ColBenchSettings,
        splits: Mapping[str, Sequence[CodeTask]],
        invented: Mapping[str, InventedTask],
        judge: AnswerJudge,
        human: Human,
    ) -> None:
        self.settings, self.judge, self.human, self.invented = settings, judge, human, invented
        self.splits = {name: tuple(task.id for task in tasks) for name, tasks in splits.items()}
        self.tasks = {task.id: task for tasks in splits.values() for task in tasks}
        self.numbered = tuple(self.tasks)
        self.digest = digest(splits)


class ColBenchEnvironment:
    """One episode at a time."""

    name: ClassVar[str] = "colbench_backend"
    title: ClassVar[str] = "ColBench"
    version: ClassVar[str] = "1"
    reward_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reward_kind: ClassVar[str] = "terminal"
    success_threshold: ClassVar[float] = 1.0
    blocking: ClassVar[bool] = True
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ("step_limit", "report")

    def __init__(self, world: ColBenchShared) -> None:
        self._world = world
        self._episode: CodeDialogue | None = None

    @property
    def default_max_steps(self) -> int:
        return self._world.settings.rounds

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._world.splits)

    @property
    def capabilities(self) -> frozenset[str]:
        # Nobody writes an expert for real tasks: one that reads the reference would leak it.
        own = {"expert"} if self._world.invented else set()
        return frozenset({"fork", "snapshot", "privileged", *own})

    def tasks(self, split: str) -> Sequence[str]:
        return self._world.splits[split]

    def has_task(self, task_id: str) -> bool:
        return task_id in self._world.tasks

    def numbered_tasks(self) -> Sequence[str]:
        return self._world.numbered

    def identity(self) -> dict[str, Any]:
        settings = self._world.settings
        return {
            "name": self.name,
            "version": self.version,
            "options": {**rules_of(settings), "invented": settings.is_invented},
            "tasks_sha256": self._world.digest,
            "human_prompt_sha256": settings.human_prompt_sha256,
        }

    def facts(self) -> dict[str, Any]:
        """What decides nothing and is worth knowing of a result."""
        return {"sandbox": self._world.judge.facts()}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a task; no seed changes it."""
        del seed
        task = self._world.tasks[task_id]
        self._episode = CodeDialogue(task, self._world.settings)
        return self._opening(task), {"step_limit": self._world.settings.rounds}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Hear one reply of the agent. Raises EnvironmentFailure where the box, or a human who is
        a model, fails."""
        episode = self._started()
        if episode.done:
            return _OVER, 0.0, True, False, {}
        if episode.hear(action):
            try:
                judged = self._world.judge.verdicts(episode.task, episode.answer)
            except BoxError as error:
                raise self._failed(f"the sandbox fails: {error}") from error
            episode.verdicts = judged
            return _THANKS, self._reward(judged), True, False, {"report": episode.report()}
        human, asked = self._world.human, (episode.task, episode.said, action)
        reply = human.reply(*asked)
        again = episode.refused(reply)
        if again:
            reply = human.reply(*asked, again=True)
        return episode.tell(action, reply, again=again), 0.0, False, False, {}

    def expert_steps(self, task_id: str, *, seed: int = 0) -> Sequence[ExpertAction]:
        """Questions, and the answer; by seed where the expert is careless."""
        settings = self._world.settings
        questions, answer = self._world.invented[task_id].dialogue(
            Random(f"expert {seed} {task_id}"),
            settings.rounds - 1,
            settings.careless,
            settings.wander,
        )
        last = f"{settings.answer_marker}\n{answer}"
        return [ExpertAction(text) for text in (*questions, last)]

    def hidden_text(self, task_id: str) -> HiddenText:
        """The reference."""
        return HiddenText(self._world.tasks[task_id].reference, "text/x-python")

    def snapshot(self) -> dict[str, Any]:
        """The whole episode as JSON values. The task is named by its id: nothing of its reference
        is in it."""
        return {"environment": self.name, "version": 1, **self._started().saved()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        match snapshot:
            case {"environment": self.name, "version": 1, "task_id": str(task_id)} if (
                task_id in self._world.tasks
            ):
                task = self._world.tasks[task_id]
            case _:
                raise ValueError(f"not a snapshot of {self.title} with these options")
        self._episode = restored(task, self._world.settings, snapshot)

    def close(self) -> None:
        """An episode holds memory only."""

    def _opening(self, task: CodeTask) -> str:
        reveal = self._world.settings.reveal
        if reveal is None:
            return task.description
        # As critics are shown hidden text: before the first message's own, an empty line between.
        return f"{reveal.replace('{reference}', task.reference)}\n\n{task.description}"

    def _reward(self, judged: Sequence[str]) -> float:
        if self._world.settings.reward == "all_tests":
            return float(set(judged) == {"pass"})
        return score(judged)  # type: ignore[arg-type]

    def _failed(self, message: str) -> EnvironmentFailure:
        self._episode = None
        return EnvironmentFailure(message)

    def _started(self) -> CodeDialogue:
        if self._episode is None:
            raise EpisodeError("reset the environment before stepping it")
        return self._episode
