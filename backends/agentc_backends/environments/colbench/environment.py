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
from agentc_backends.environments.colbench.played import (
    OVER,
    THANKS,
    DialogueEnvironment,
    PlayedTasks,
)
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, digest
from agentc_backends.environments.server.environment import EnvironmentFailure, HiddenText
from agentc_backends.environments.server.world import ExpertAction


class ColBenchShared(PlayedTasks[CodeTask]):
    """What the episodes of a server share; it never changes."""

    def __init__(
        self,
        settings: ColBenchSettings,
        splits: Mapping[str, Sequence[CodeTask]],
        invented: Mapping[str, InventedTask],
        judge: AnswerJudge,
        human: Human,
    ) -> None:
        super().__init__(settings, splits, invented, digest)
        self.settings, self.judge, self.human, self.invented = settings, judge, human, invented


class ColBenchEnvironment(DialogueEnvironment[CodeTask, CodeDialogue]):
    """One episode at a time."""

    name: ClassVar[str] = "colbench_backend"
    title: ClassVar[str] = "ColBench"
    success_threshold: ClassVar[float] = 1.0

    def __init__(self, world: ColBenchShared) -> None:
        super().__init__(world)
        self._world = world

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
            return OVER, 0.0, True, False, {}
        if episode.hear(action):
            try:
                judged = self._world.judge.verdicts(episode.task, episode.answer)
                episode.unusable = self._world.judge.unusable(episode.task)
            except BoxError as error:
                raise self._failed(f"the sandbox fails: {error}") from error
            episode.verdicts = judged
            return THANKS, self._reward(judged), True, False, {"report": episode.report()}
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

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        task = self._saved_task(snapshot)
        self._episode = restored(task, self._world.settings, snapshot)

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
