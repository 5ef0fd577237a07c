"""What a dialogue with a human is, whatever it is about: rounds, the marker, the human's replies as
the agent reads them, and what is counted of them. All of its state is JSON.

`episode.py` is one about code, `frontend/episode.py` one about a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentc_backends.environments.colbench.humans.guard import REFUSAL, code_starts

ANSWER_NOW = "Answer now."
"""Ends the human's last reply, where that is asked for: an agent cannot see otherwise that one
more question costs everything."""
_COUNTED = ("unknown", "cut", "code_like")


class DialogueTask(Protocol):
    """What is asked about: `description` is what the agent is told, `reference` what the human
    knows."""

    @property
    def id(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def reference(self) -> str: ...


class DialogueSettings(Protocol):
    """Of both environments."""

    @property
    def rounds(self) -> int: ...
    @property
    def answer_marker(self) -> str: ...
    @property
    def reply_chars(self) -> int: ...
    @property
    def guard(self) -> str: ...
    @property
    def announce_last(self) -> bool: ...


@dataclass(slots=True)
class DialogueRounds:
    """`said` are the rounds so far: the agent's reply, and the human's as the agent read it."""

    said: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))

    def marked(self, action: str, settings: DialogueSettings) -> str | None:
        """What a reply of the agent gives as its answer, None where it gives none: what follows
        the first marker, up to the next."""
        _, marker, after = action.partition(settings.answer_marker)
        return after.partition(settings.answer_marker)[0] if marker else None

    def is_last(self, settings: DialogueSettings) -> bool:
        """Whether the next reply of the agent is."""
        return len(self.said) + 1 >= settings.rounds

    def refused(self, task: DialogueTask, settings: DialogueSettings, reply: str) -> bool:
        """Whether a human's reply holds code and none is to be told."""
        return settings.guard == "refuse" and _code_starts(reply, task) is not None

    def tell(
        self,
        task: DialogueTask,
        settings: DialogueSettings,
        action: str,
        reply: str,
        *,
        again: bool = False,
    ) -> str:
        """Takes the human's reply to an action; returns it as the agent reads it. `again`: what
        was said first was refused."""
        self.counts["unknown"] += _does_not_know(reply)
        start = _code_starts(reply, task)
        self.counts["code_like"] += again or start is not None
        if start is not None:
            if settings.guard == "cut":
                reply = reply[:start].rstrip()
            elif settings.guard == "refuse":
                reply = REFUSAL
        if len(reply) > settings.reply_chars:
            self.counts["cut"] += 1
            reply = reply[: settings.reply_chars]
        if settings.announce_last and len(self.said) + 2 == settings.rounds:
            reply = f"{reply} {ANSWER_NOW}"
        self.said.append((action, reply))
        return reply

    def report(self) -> dict[str, int]:
        """Of the human."""
        return {"replies": len(self.said), **self.counts}

    def saved(self) -> dict[str, Any]:
        return {"said": [list(each) for each in self.said], "counts": dict(self.counts)}


def restored_rounds(snapshot: Mapping[str, Any], most: int) -> DialogueRounds:
    """What `saved` wrote, of fewer than `most` rounds. Raises ValueError."""
    match snapshot:
        case {"said": list(said), "counts": dict(counts)} if len(said) < most:
            return DialogueRounds([_round(each) for each in said], _counts(counts))
    raise ValueError("not a snapshot of an episode with these options")


def _code_starts(reply: str, task: DialogueTask) -> int | None:
    return code_starts(reply, task.reference, task.description)


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
