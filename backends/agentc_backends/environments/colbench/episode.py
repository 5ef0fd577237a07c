"""A dialogue about one function: where the answer is, and what is reported of it.

It knows neither box nor human; `environment.py` asks both. All of its state is JSON. Neighbour:
`dialogue.py`, whatever it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from agentc_backends.environments.code_tests.calls import Failure
from agentc_backends.environments.code_tests.suite import CallVerdict
from agentc_backends.environments.colbench.dialogue import DialogueRounds, restored_rounds
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask

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
    def said(self) -> list[tuple[str, str]]:
        return self.rounds.said

    def hear(self, action: str) -> bool:
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

    def tell(self, action: str, reply: str, *, again: bool = False) -> str:
        """Takes the human's reply to an action; returns it as the agent reads it."""
        return self.rounds.tell(self.task, self.settings, action, reply, again=again)

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
