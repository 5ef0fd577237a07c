"""A dialogue about one task: what was said, where the answer is, and what is reported of it.

It knows neither box nor human; `environment.py` asks both. All of its state is JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from agentc_backends.environments.code_tests.calls import Failure
from agentc_backends.environments.code_tests.suite import CallVerdict
from agentc_backends.environments.colbench.humans.guard import REFUSAL, code_starts
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask

ANSWER_NOW = "Answer now."
"""Ends the human's last reply, where that is asked for: an agent cannot see otherwise that one
more question costs everything."""
_COUNTED = ("unknown", "cut", "code_like")
_VERDICTS = frozenset({"pass", "fail", "no_answer", *get_args(Failure)})


@dataclass(slots=True)
class CodeDialogue:
    """`said` are the rounds so far: the agent's reply, and the human's as the agent read it."""

    task: CodeTask
    settings: ColBenchSettings
    said: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    answer: str | None = None
    answer_from: Literal["marker", "limit"] | None = None
    verdicts: tuple[CallVerdict, ...] | None = None

    @property
    def done(self) -> bool:
        return self.verdicts is not None

    def hear(self, action: str) -> bool:
        """Whether this reply of the agent is its last; then `answer` is what it answered."""
        _, marker, after = action.partition(self.settings.answer_marker)
        if marker:
            self.answer = after.partition(self.settings.answer_marker)[0]
            self.answer_from = "marker"
            return True
        if len(self.said) + 1 < self.settings.rounds:
            return False
        if self.settings.at_limit == "whole_reply":
            self.answer, self.answer_from = action, "limit"
        return True

    def refused(self, reply: str) -> bool:
        """Whether a human's reply holds code and none is to be told."""
        guarded = self.settings.guard == "refuse"
        return guarded and code_starts(reply, self.task.reference) is not None

    def tell(self, action: str, reply: str, *, again: bool = False) -> str:
        """Takes the human's reply to an action; returns it as the agent reads it. `again`: what
        was said first was refused."""
        self.counts["unknown"] += _does_not_know(reply)
        start = code_starts(reply, self.task.reference)
        self.counts["code_like"] += again or start is not None
        if start is not None:
            if self.settings.guard == "cut":
                reply = reply[:start].rstrip()
            elif self.settings.guard == "refuse":
                reply = REFUSAL
        if len(reply) > self.settings.reply_chars:
            self.counts["cut"] += 1
            reply = reply[: self.settings.reply_chars]
        if self.settings.announce_last and len(self.said) + 2 == self.settings.rounds:
            reply = f"{reply} {ANSWER_NOW}"
        self.said.append((action, reply))
        return reply

    def report(self) -> dict[str, Any]:
        """Of the last step: no expected value, nothing of the reference."""
        judged = self.verdicts or ()
        return {
            "tests": len(judged),
            "passed": judged.count("pass"),
            "verdicts": list(judged),
            "answer_from": self.answer_from,
            "human": {"replies": len(self.said), **self.counts},
        }

    def saved(self) -> dict[str, Any]:
        return {
            "task_id": self.task.id,
            "said": [list(each) for each in self.said],
            "counts": dict(self.counts),
            "answer": self.answer,
            "answer_from": self.answer_from,
            "verdicts": None if self.verdicts is None else list(self.verdicts),
            "done": self.done,
        }


def restored(
    task: CodeTask, settings: ColBenchSettings, snapshot: Mapping[str, Any]
) -> CodeDialogue:
    """What `saved` wrote. Raises ValueError."""
    match snapshot:
        case {
            "said": list(said),
            "counts": dict(counts),
            "answer": str() | None as answer,
            "answer_from": "marker" | "limit" | None as source,
            "verdicts": list() | None as judged,
            "done": bool(done),
        } if len(said) < settings.rounds and done == (judged is not None):
            return CodeDialogue(
                task,
                settings,
                [_round(each) for each in said],
                _counts(counts),
                answer,
                source,
                None if judged is None else _verdicts(judged, task),
            )
    raise ValueError("not a snapshot of an episode with these options")


def _does_not_know(reply: str) -> bool:
    text = reply.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return "do not know" in text or "don't know" in text


def _round(each: object) -> tuple[str, str]:
    match each:
        case [str(action), str(reply)]:
            return action, reply
    raise ValueError("a round is the agent's reply and the human's")


def _counts(counts: Mapping[str, Any]) -> dict[str, int]:
    found = {name: counts.get(name) for name in _COUNTED}
    if set(counts) != set(_COUNTED) or not all(type(n) is int and n >= 0 for n in found.values()):
        raise ValueError("the counts of a snapshot are whole numbers")
    return {name: int(number or 0) for name, number in found.items()}


def _verdicts(judged: Sequence[Any], task: CodeTask) -> tuple[CallVerdict, ...]:
    if len(judged) != len(task.calls) or not all(each in _VERDICTS for each in judged):
        raise ValueError("there is a verdict for each test")
    return tuple(judged)
