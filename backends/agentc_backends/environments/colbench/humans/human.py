"""What a human is to the environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentc_backends.environments.colbench.tasks import CodeTask


class Human(Protocol):
    """Called from several threads at a time."""

    def reply(
        self, task: CodeTask, said: Sequence[tuple[str, str]], question: str, *, again: bool = False
    ) -> str:
        """What it says to `question`; `said` are the rounds before: the agent's reply, its own.
        `again`: what it said first held code. Raises EnvironmentFailure."""
