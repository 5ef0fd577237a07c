"""Environments that gymnasium makes by the name of this module: one that takes and gives texts, and
one for each thing that cannot be played in words, or goes wrong."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy
from gymnasium.spaces import Box, Discrete, Text

LETTERS = "abcdefghijklmnopqrstuvwxyz "


class Riddle(gymnasium.Env[str, str]):
    """The word is `echo`; rewards are what `reward` says."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, reward: float = 1.0) -> None:
        self.action_space = Text(max_length=8, charset=LETTERS)
        self.observation_space = Text(max_length=200)
        self._reward = reward

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return f"Riddle {self.np_random.integers(1000)}: what answers in every language?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "crash":
            raise RuntimeError("the sphinx fell")
        right = action == "echo"
        told = "Right." if right else "No."
        return told, self._reward * right, right, False, {"asked": numpy.float32(1 / 3)}


class Pictures(Riddle):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = Discrete(2)
        self.observation_space = Box(0, 255, (64, 64, 3), numpy.uint8)


for name, world in (("Riddle", Riddle), ("Pictures", Pictures)):
    gymnasium.register(f"{name}-v0", world)
