"""An environment that counts rounds and reports on each episode: `python rounds_world.py
--ready-file PATH`.

A task is a word. An action with `ANSWER:` answers with what follows it; of the third action, the
last, the whole text is the answer. The reward is the share of the word's letters in it. What the
agent is not told stands in the report.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, ClassVar

from agentc_backends.environments.server.environment import MemoryEnvironment
from agentc_backends.environments.server.process import add_server_arguments, serve

ROUNDS = 3
MARK = "ANSWER:"


class RoundsWorld(MemoryEnvironment):
    name = "rounds"
    title = "Rounds"
    version = "1"
    default_max_steps = 10
    splits = ("train",)
    capabilities: frozenset[str] = frozenset()
    reported: ClassVar[tuple[str, ...]] = ("step_limit", "report")

    def __init__(self) -> None:
        self._word = ""
        self._taken = 0

    def tasks(self, split: str) -> tuple[str, ...]:
        return ("ding", "dong")

    def has_task(self, task_id: str) -> bool:
        return task_id in self.tasks("train")

    def numbered_tasks(self) -> tuple[str, ...]:
        return self.tasks("train")

    def identity(self) -> dict[str, Any]:
        return {"name": self.name}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        self._word, self._taken = task_id, 0
        return "Guess my word.", {"step_limit": ROUNDS, "hidden": task_id}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._taken += 1
        marked, last = MARK in action, self._taken == ROUNDS
        if not marked and not last:
            return f"You said {action!r}.", 0.0, False, False, {"hidden": self._word}
        answer = action.split(MARK)[1].strip() if marked else action
        verdicts = tuple("pass" if letter in answer else "fail" for letter in self._word)
        report = {
            "verdicts": verdicts,
            "answer": answer,
            "answer_from": "marker" if marked else "limit",
        }
        info = {"report": report, "hidden": self._word}
        return "Thank you.", verdicts.count("pass") / len(verdicts), True, False, info


def main() -> int:
    parser = argparse.ArgumentParser()
    add_server_arguments(parser)
    return serve(RoundsWorld, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
