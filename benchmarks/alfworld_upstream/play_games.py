"""Plays games as ALFWorld does: `PYTHON -m benchmarks.alfworld_upstream.play_games [--memoised]` in
its software stack. A JSON request a line on standard input, an answer a line on the output.

A request has `domain`, `grammar`, `problem`, `task` (what takes the place of @@TASK@@ in the
grammar) and `episodes`, lists of commands. An answer has for each episode what was told, what was
admissible and whether the game was won, after the reset and after each command; and `seconds` of
CPU of `load`, `reset` (of the last episode) and `steps`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

MARK = "@@TASK@@"
_OPENING = "-= Welcome to TextWorld, ALFRED! =-\n\n"


def main() -> int:
    # Fast Downward's translation captures sys.stdout, and its library writes to descriptor 1.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld.envs import PddlEnv

    memoised = "--memoised" in sys.argv
    if memoised:
        from benchmarks.alfworld_upstream.memoised import memoise

        memoise()
    # One environment for all games, since each one loads a copy of the planner's library.
    environment = AlfredDemangler(
        PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True)), shuffle=False
    )
    for line in sys.stdin:
        answers.write(json.dumps(_played(environment, json.loads(line), memoised)) + "\n")
        answers.flush()
    return 0


def _played(environment: Any, request: dict[str, Any], memoised: bool) -> dict[str, Any]:
    grammar, task = request["grammar"], request["task"]
    seconds: dict[str, float] = {"steps": 0.0}

    def state(found: Any) -> list[Any]:
        told = found.feedback
        return [told.replace(MARK, task) if memoised else told,
                found["admissible_commands"], bool(found["won"])]  # fmt: skip

    began = time.process_time()
    # Memoised, one grammar serves all games: the task is put into the text afterwards.
    game = {
        "pddl_domain": request["domain"],
        "grammar": grammar if memoised else grammar.replace(MARK, task),
        "pddl_problem": request["problem"],
    }
    environment.load(game)
    seconds["load"] = time.process_time() - began
    episodes = []
    for commands in request["episodes"]:
        began = time.process_time()
        told = [state(environment.reset())]
        seconds["reset"] = time.process_time() - began
        if not told[0][0].startswith(_OPENING):
            raise ValueError(f"the opening is {told[0][0]!r}")
        told[0][0] = told[0][0][len(_OPENING) :]
        began = time.process_time()
        told += [state(environment.step(command)[0]) for command in commands]
        seconds["steps"] += time.process_time() - began
        episodes.append(told)
    return {"episodes": episodes, "seconds": seconds}


if __name__ == "__main__":
    sys.exit(main())
