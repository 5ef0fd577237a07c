"""A blocking environment for the tests of the server: `python bell.py --ready-file PATH`.

Tasks are words. The action `wait N` takes N seconds, `hold PATH` makes the file PATH.begun and
lasts until there is a file PATH, `break` breaks the world, and ringing as often as the word has
letters wins; it knows neither expert nor snapshots.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path
from typing import Any

from agentc_backends.environments.server.application import DEFAULT_THREADS
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError
from agentc_backends.environments.server.process import add_server_arguments, serve


class BellEnvironment:
    name = "bell"
    title = "Bell"
    version = "1"
    reward_range = (-1.0, 1.0)
    reward_kind = "latest"
    success_threshold = 1.0
    default_max_steps = 9
    splits = ("train",)
    capabilities: frozenset[str] = frozenset()
    blocking = True
    resets_on_create = False
    reported = ("rung",)

    def __init__(self) -> None:
        self._word: str | None = None
        self._rung = 0
        self._inside = threading.Lock()

    def tasks(self, split: str) -> tuple[str, ...]:
        return ("ding", "dong")

    def has_task(self, task_id: str) -> bool:
        return task_id in ("ding", "dong")

    def numbered_tasks(self) -> tuple[str, ...]:
        return ("ding", "dong")

    def identity(self) -> dict[str, Any]:
        return {"name": self.name}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        self._word, self._rung = task_id, 0
        return f"Ring {task_id}.", {"rung": 0, "hidden": 1}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._word is None:
            raise EpisodeError("nothing to ring yet")
        if not self._inside.acquire(blocking=False):
            raise AssertionError("two calls at a time in one episode")
        try:
            if action == "break":
                raise EnvironmentFailure("the bell is cracked")
            if action.startswith("wait "):
                time.sleep(float(action[5:]))
            elif action.startswith("hold "):
                _hold(Path(action[5:]))
            else:
                self._rung += 1
        finally:
            self._inside.release()
        done = self._rung >= len(self._word)
        return action, 1.0 if done else -0.5, done, False, {"rung": self._rung}

    def close(self) -> None:
        self._word = None


def _hold(path: Path) -> None:
    path.with_suffix(".begun").touch()
    while not path.exists():
        time.sleep(0.01)


def main() -> int:
    parser = argparse.ArgumentParser()
    add_server_arguments(parser)
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    options = parser.parse_args()
    return serve(BellEnvironment, options, threads=options.threads)


if __name__ == "__main__":
    sys.exit(main())
