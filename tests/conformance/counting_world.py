"""A small environment with one fault at will: `python counting_world.py --fault NAME ...`.

The agent counts up to three. Each fault breaks one promise that the kit's checks look for.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agentc_backends.environments.server.environment import HiddenText
from agentc_backends.environments.server.process import add_server_arguments, serve

TASKS = {"train": ("ants", "bees"), "test": ("cats",)}
_shared = {"count": 0, "opened": 0}


@dataclass(frozen=True, slots=True)
class Step:
    action: str
    thought: str = ""


class CountingWorld:
    name: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting"
    version: ClassVar[str] = "1"
    reward_kind: ClassVar[str] = "terminal"
    success_threshold: ClassVar[float] = 1.0
    default_max_steps: ClassVar[int] = 20
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    blocking: ClassVar[bool] = False
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ()

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._task = ""
        self._count = 0
        self._history: list[str] = []

    @property
    def capabilities(self) -> frozenset[str]:
        held = {"expert", "fork", "privileged", "snapshot"}
        return frozenset(held | {"seed"} if self._fault == "seed_without_effect" else held)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def tasks(self, split: str) -> tuple[str, ...]:
        if self._fault == "task_in_two_splits" and split == "test":
            return ("cats", "ants")
        return TASKS[split]

    def has_task(self, task_id: str) -> bool:
        return self._fault == "takes_any_task" or any(task_id in part for part in TASKS.values())

    def numbered_tasks(self) -> tuple[str, ...]:
        return ("ants", "bees", "cats")

    def hidden_text(self, task_id: str) -> HiddenText:
        return HiddenText(text=f"{task_id} are three")

    def identity(self) -> dict[str, Any]:
        return {"name": self.name}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        self._task, self._history = task_id, []
        if self._fault != "reset_keeps_count":
            self._count = 0
        _shared["count"] = 0
        text = f"Count three {task_id}."
        if self._fault == "hash_in_text":
            text += f" {hash(task_id) % 1000}"
        if self._fault == "random_text":
            text += f" {random.random()}"
        if self._fault == "seed_undeclared":
            text += f" {seed}"
        return text, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._fault == "breaks_on_nonsense" and not action.isascii():
            raise RuntimeError("not ASCII")
        was_done = self._count >= 3
        self._history.append(action)
        if action == "up" and not (was_done and self._fault != "plays_on"):
            self._count += 1
            _shared["count"] += 1
        count = _shared["count"] if self._fault == "shares_world" else self._count
        if self._fault == "shares_world":
            self._count = count
        done = count >= 3
        reward = 1.0 if done and not was_done else 0.0
        if self._fault == "reward_of_two":
            reward *= 2
        if self._fault == "pays_after_end" and done:
            reward = 1.5 if was_done else 1.0
        if self._fault == "done_falls_back" and was_done:
            done = False
        return f"{count} {self._task}", reward, done, False, {}

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[Step, ...]:
        return tuple(Step("up") for _ in range(2 if self._fault == "expert_stops_early" else 3))

    def snapshot(self) -> dict[str, Any]:
        count = 0 if self._fault == "fork_forgets" else self._count
        state = {"task": self._task, "count": count, "done": self._count >= 3}
        if self._fault == "fork_moves_original":
            self._count = max(0, self._count - 1)
        return state

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        match snapshot:
            case {"task": str(task), "count": int(count)}:
                self._task, self._count = task, count
            case _ if self._fault == "restore_crashes":
                raise KeyError("task")
            case _:
                raise ValueError("not a snapshot")

    def close(self) -> None:
        pass


def main() -> int:
    parser = argparse.ArgumentParser()
    add_server_arguments(parser)
    parser.add_argument("--fault", default="none")
    options = parser.parse_args()
    if options.fault == "no_token":
        import os

        os.environ.pop("AGENTC_TOKEN", None)
    if options.fault == "forgets_limits":
        options.max_sessions, options.idle_timeout = 4096, 3600.0
    return serve(lambda: CountingWorld(options.fault), options)


if __name__ == "__main__":
    sys.exit(main())
