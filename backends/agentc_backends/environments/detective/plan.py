"""The expert: jericho's walkthrough, read when it is asked for and said in legal actions; or, where
its skill says so, legal actions at random.

A command of the walkthrough that changes nothing is left out; one that is not legal as it is
worded becomes the legal action that does the same. Neighbour: `game.py`.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass

from agentc_backends.environments.detective.commands import tidy
from agentc_backends.environments.detective.game import DetectiveGame, Position
from agentc_backends.environments.server.environment import EnvironmentFailure


@dataclass(frozen=True, slots=True)
class WalkthroughStep:
    """One action; walkthroughs have no thoughts."""

    action: str
    thought: str = ""


def wandering(game: DetectiveGame, chance: random.Random, most: int) -> tuple[WalkthroughStep, ...]:
    """Legal actions drawn evenly until the game is over, `most` of them at most. Raises
    EnvironmentFailure."""
    position, plan = game.opening, list[WalkthroughStep]()
    while not position.over and len(plan) < most:
        action = chance.choice(game.legal(position))
        plan.append(WalkthroughStep(action))
        position = game.act(position, action)
    return tuple(plan)


class Walkthrough:
    """The plan, made once; any thread may ask."""

    def __init__(self, game: DetectiveGame) -> None:
        self._game = game
        self._plan: tuple[WalkthroughStep, ...] = ()
        self._lock = threading.Lock()

    def steps(self) -> tuple[WalkthroughStep, ...]:
        """Raises EnvironmentFailure."""
        with self._lock:
            self._plan = self._plan or self._made()
            return self._plan

    def _made(self) -> tuple[WalkthroughStep, ...]:
        position, plan = self._game.opening, []
        for command in self._game.walkthrough:
            after = self._game.act(position, tidy(command))
            if after.key == position.key and after.score == position.score and not after.over:
                continue
            action = self._worded(position, tidy(command), after)
            plan.append(WalkthroughStep(action))
            position = self._game.act(position, action)
        return tuple(plan)

    def _worded(self, position: Position, command: str, after: Position) -> str:
        legal = self._game.legal(position)
        if command in legal:
            return command
        for action in legal:
            same = self._game.act(position, action)
            if (same.key, same.score, same.over) == (after.key, after.score, after.over):
                return action
        raise EnvironmentFailure(f"no legal action does what the walkthrough's {command!r} does")
