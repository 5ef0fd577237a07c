"""ColBench's programming tasks as an environment: an agent asks a human, and answers with code.

An action is a whole reply. The human, who knows the reference, replies to all that hold no answer
(`humans.py`); the answer runs against the task's tests in a box (`judging.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal, get_args

from agentc.runtime.sandbox.process import BoxError
from agentc_backends.environments.code_tests.calls import Failure
from agentc_backends.environments.code_tests.suite import CallVerdict, score
from agentc_backends.environments.colbench.dialogue import (
    OVER,
    THANKS,
    DialogueEnvironment,
    DialogueRounds,
    DialogueTasks,
    restored_rounds,
)
from agentc_backends.environments.colbench.humans import Human
from agentc_backends.environments.colbench.invented import InventedTask
from agentc_backends.environments.colbench.judging import AnswerJudge
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, digest
from agentc_backends.environments.server.environment import EnvironmentFailure, HiddenText
from agentc_backends.environments.server.world import ExpertAction

_VERDICTS = frozenset({"pass", "fail", "no_answer", "forbidden", *get_args(Failure)})


@dataclass(slots=True)
class CodeDialogue:
    """An episode."""

    task: CodeTask
    settings: ColBenchSettings
    rounds: DialogueRounds = field(default_factory=DialogueRounds)
    answer: str | None = None
    answer_from: Literal["marker", "limit"] | None = None
    verdicts: tuple[CallVerdict, ...] | None = None
    unusable: int = 0
    """Tests that no answer can pass."""

    @property
    def done(self) -> bool:
        return self.verdicts is not None

    @property
    def history(self) -> list[tuple[str, str]]:
        return self.rounds.said

    def take_action(self, action: str) -> bool:
        """Whether this reply of the agent is its last; then `answer` is what it answered."""
        marked = self.rounds.marked(action, self.settings)
        if marked is not None:
            self.answer, self.answer_from = marked, "marker"
            return True
        if not self.rounds.is_last(self.settings):
            return False
        if self.settings.at_limit == "whole_reply":
            self.answer, self.answer_from = action, "limit"
        return True

    def refused(self, reply: str) -> bool:
        """Whether a human's reply holds code and none is to be told."""
        return self.rounds.refused(self.task, self.settings, reply)

    def record_reply(self, action: str, reply: str, *, again: bool = False) -> str:
        """Takes the human's reply to an action; returns it as the agent reads it."""
        return self.rounds.record_reply(self.task, self.settings, action, reply, again=again)

    def report(self) -> dict[str, Any]:
        """Of the last step: no expected value, nothing of the reference."""
        judged = self.verdicts or ()
        return {
            "tests": len(judged),
            "passed": judged.count("pass"),
            "verdicts": list(judged),
            "unusable": self.unusable,
            "answer_from": self.answer_from,
            "human": self.rounds.report(),
        }

    def saved(self) -> dict[str, Any]:
        return {
            "task_id": self.task.id,
            **self.rounds.saved(),
            "answer": self.answer,
            "answer_from": self.answer_from,
            "verdicts": None if self.verdicts is None else list(self.verdicts),
            "done": self.done,
        }


def restored(
    task: CodeTask, settings: ColBenchSettings, snapshot: Mapping[str, Any]
) -> CodeDialogue:
    """What `saved` wrote. Raises ValueError."""
    rounds = restored_rounds(snapshot, settings.rounds)
    match snapshot:
        case {
            "answer": str() | None as answer,
            "answer_from": "marker" | "limit" | None as source,
            "verdicts": list() | None as judged,
            "done": bool(done),
        } if done == (judged is not None):
            return CodeDialogue(
                task,
                settings,
                rounds,
                answer,
                source,
                None if judged is None else _verdicts(judged, task),
            )
    raise ValueError("not a snapshot of an episode with these options")


def _verdicts(judged: Sequence[Any], task: CodeTask) -> tuple[CallVerdict, ...]:
    if len(judged) != len(task.calls) or not all(each in _VERDICTS for each in judged):
        raise ValueError("there is a verdict for each test")
    return tuple(judged)


class ColBenchShared(DialogueTasks[CodeTask]):
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
        if episode.take_action(action):
            try:
                judged = self._world.judge.verdicts(episode.task, episode.answer)
                episode.unusable = self._world.judge.unusable(episode.task)
            except BoxError as error:
                raise self._failed(f"the sandbox fails: {error}") from error
            episode.verdicts = judged
            return THANKS, self._reward(judged), True, False, {"report": episode.report()}
        human, asked = self._world.human, (episode.task, episode.history, action)
        reply = human.reply(*asked)
        again = episode.refused(reply)
        if again:
            reply = human.reply(*asked, again=True)
        return episode.record_reply(action, reply, again=again), 0.0, False, False, {}

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
