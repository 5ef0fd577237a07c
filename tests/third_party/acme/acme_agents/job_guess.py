"""Serves the guessing game until SIGTERM: `python -m acme_agents.job_guess`."""

import argparse
import sys
from functools import partial
from typing import Any, NamedTuple

from agentc_backends.environments.server.environment import EpisodeError
from agentc_backends.environments.server.process import add_server_arguments, serve


class ExpertStep(NamedTuple):
    """One guess of the expert, and why."""

    action: str
    thought: str


class Game:
    """One episode at a time; a task is the number to find."""

    name, title, version = "guess", "Guess", "1"
    reward_range, reward_kind, success_threshold = (0.0, 1.0), "terminal", 1.0
    splits, default_max_steps = ("train", "test"), 8
    capabilities = frozenset({"expert", "fork", "snapshot"})
    blocking, resets_on_create, reported = False, True, ()

    def __init__(self, highest: int) -> None:
        self.highest = highest
        self.secret: int | None = None
        self.done = False

    def tasks(self, split: str) -> tuple[str, ...]:
        """Odd numbers to learn from, even ones to be tested on."""
        first = {"train": 1, "test": 2}[split]
        return tuple(str(number) for number in range(first, self.highest + 1, 2))

    def has_task(self, task_id: str) -> bool:
        return task_id in self.numbered_tasks()

    def numbered_tasks(self) -> tuple[str, ...]:
        return tuple(str(number) for number in range(1, self.highest + 1))

    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version, "highest": self.highest}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        self.secret, self.done = int(task_id), False
        return f"Guess the number from 1 to {self.highest}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.secret is None:
            raise EpisodeError("reset the game first")
        if self.done:
            return "The game is over.", 0.0, True, False, {}
        guess = int(action) if action.strip().isascii() and action.strip().isdigit() else None
        self.done = guess == self.secret
        if guess is None or self.done:
            reply = "That is it." if self.done else "Say a number."
        else:
            reply = "It is higher." if guess < self.secret else "It is lower."
        return reply, float(self.done), self.done, False, {}

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ExpertStep, ...]:
        """Halves what is left."""
        low, high, steps = 1, self.highest, []
        while not steps or steps[-1].action != task_id:
            middle = (low + high) // 2
            steps.append(ExpertStep(str(middle), f"It lies between {low} and {high}."))
            low, high = (middle + 1, high) if middle < int(task_id) else (low, middle - 1)
        return tuple(steps)

    def snapshot(self) -> dict[str, Any]:
        return {"secret": self.secret, "done": self.done}

    def restore(self, snapshot: dict[str, Any]) -> None:
        secret, done = snapshot.get("secret"), snapshot.get("done")
        if str(secret) not in self.numbered_tasks() or not isinstance(done, bool):
            raise ValueError("not a snapshot of this game")
        self.secret, self.done = int(str(secret)), done

    def close(self) -> None:
        """Nothing is held."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--highest", type=int, required=True)
    options = parser.parse_args()
    return serve(partial(Game, options.highest), options)


if __name__ == "__main__":
    sys.exit(main())
