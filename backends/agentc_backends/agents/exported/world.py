"""The world of an exported package, in the process of whoever plays it: its tasks, and episodes.

The taskset that `agentc dev export verifiers` writes calls it; `application.py` serves the same
file. Standard library only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from agentc_backends.agents.common.actions import parse_action
from agentc_backends.agents.common.prompts import ReplyFormat
from agentc_backends.environments.server.environment import Environment, floor_of, reward_after
from agentc_backends.environments.server.program import Opener, opener_of

INVALID = "There is no action in the reply."
"""What an agent receives after a reply without an action."""


def exported_opener(file: Path) -> Opener:
    """What opens the environment of `environment.json`: the program of a lease, and its settings.
    Raises NotInsideError."""
    os.environ.setdefault("AGENTC_SPEC_DIR", str(file.parent))
    held = json.loads(file.read_bytes())
    return opener_of(held["program"], held["settings"])


class ExportedEpisode:
    """An episode: the last `observation`, whether it is `done`, its `reward` so far, and the number
    of `invalid` replies."""

    def __init__(self, environment: Environment, task: str, seed: int, reply_format: ReplyFormat):
        self._environment = environment
        self._format = reply_format
        self.observation, _ = environment.reset(task, seed=seed)
        self.done = False
        self.reward = floor_of(environment.reward_range)
        self.invalid = 0
        self._acted = False

    def answer(self, reply: str) -> None:
        """Carry out the action of a reply; one without an action is told so. Raises
        EnvironmentFailure."""
        action = parse_action(reply, self._format)
        if action is None:
            self.invalid += 1
            self.observation = INVALID
            return
        kind, before = self._environment.reward_kind, self.reward if self._acted else None
        self.observation, reward, terminated, truncated, _ = self._environment.step(action)
        self.reward = reward_after(kind, before, reward)
        self.done = terminated or truncated
        self._acted = True

    def close(self) -> None:
        self._environment.close()


class ExportedWorld:
    """The environment of a package's `environment.json`. Raises NotInsideError."""

    def __init__(self, file: Path) -> None:
        self._open = exported_opener(file)
        self._reference = self._open()

    def splits(self) -> dict[str, Sequence[str]]:
        """The names of the tasks of each split."""
        return {split: self._reference.tasks(split) for split in self._reference.splits}

    def begin(self, task: str, *, seed: int, reply_format: ReplyFormat) -> ExportedEpisode:
        """An episode at its start; the caller closes it."""
        return ExportedEpisode(self._open(), task, seed, reply_format)
