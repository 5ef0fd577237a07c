"""The game as functions of a state: what a command does, what is seen, which actions are legal.

Legal actions take a tenth of a second to find, so they are kept by the state's key.
Neighbours: `interpreters.py` (who computes), `remembered.py`, `environment.py`, `plan.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.detective.interpreters import Interpreters
from agentc_backends.environments.detective.remembered import Remembered
from agentc_backends.environments.server.environment import EnvironmentFailure


@dataclass(frozen=True, slots=True)
class Position:
    """A state of the machine (base64), what it told last, and what a player sees in it."""

    state: str
    text: str
    score: int
    over: bool
    look: str
    inventory: str
    key: str


class DetectiveGame:
    """Answers are the same for the same state, whoever asks."""

    def __init__(self, interpreters: Interpreters, remembered: Remembered) -> None:
        self._interpreters = interpreters
        self._remembered = remembered
        facts = interpreters.facts
        self.points = int(facts["points"])
        self.supported = bool(facts["supported"])
        self.walkthrough = tuple(str(word) for word in facts["walkthrough"])
        self.meta = frozenset(facts["meta"])
        self.letters = int(facts["letters"])
        self.opening = self._position(facts["opening"])

    def act(self, position: Position, command: str) -> Position:
        """Raises EnvironmentFailure."""
        reply = self._interpreters.ask("act", position.state, command)
        if reply["halted"]:
            raise EnvironmentFailure(f"the game's interpreter halted at {command!r}")
        return self._position(reply)

    def resumed(self, state: str, text: str, score: int, *, over: bool) -> Position:
        """A position that was left with this state. Raises ValueError, EnvironmentFailure."""
        return self._position({"state": state, "text": text, "score": score, "over": over})

    def legal(self, position: Position) -> tuple[str, ...]:
        """Actions that change something, sorted; none once the game is over."""
        if position.over:
            return ()
        known = self._remembered.get(position.key)
        if known is None:
            known = self.computed_legal(position)
            self._remembered.put(position.key, known)
        return known

    def computed_legal(self, position: Position) -> tuple[str, ...]:
        """The same, asked of the interpreter each time."""
        return tuple(self._interpreters.ask("legal", position.state)["legal"])

    def _position(self, reply: Mapping[str, Any]) -> Position:
        seen = self._interpreters.ask("see", reply["state"])
        return Position(
            state=reply["state"],
            text=reply["text"],
            score=reply["score"],
            over=reply["over"],
            look=seen["look"],
            inventory=seen["inventory"],
            key=seen["key"],
        )
