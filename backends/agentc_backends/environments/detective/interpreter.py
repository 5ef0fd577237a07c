"""The process around a `GameMachine`: `python -m` of this module and a FILE.

Reads a request a line (JSON) from stdin and answers it on stdout. A request that takes too long
ends the process by an alarm, also inside of the interpreter's C code and when the server is gone.
The limit is of processor time, which a busy machine does not use up; waiting may take ten times it.
Neighbours: `machine.py`; `interpreters.py` starts these processes and talks to them.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import resource
import signal
import sys
from typing import Any

from agentc.program.imported import report
from agentc_backends.environments.detective.machine import GameMachine, GameReply, StateError

_MOST_BYTES = 1 << 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="detective.interpreter", description=__doc__)
    parser.add_argument("file", help="the game")
    parser.add_argument("--folder", default=".", help="where it runs")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for a request")
    parser.add_argument("--scratch", default="", help="parts of memory that are not the world's")
    options = parser.parse_args()
    # The interpreter prints; what it prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    parts = [part.split("-") for part in options.scratch.split(",") if part]
    scratch = [(int(start), int(end)) for start, end in parts]
    _alarm(max(options.limit, 30.0))
    machine = GameMachine(options.file, scratch)
    facts = {**machine.facts(), "opening": _as_json(machine.opening)}
    _alarm(0.0)
    report()
    # A game can be told to write files (`save`, `script`).
    os.chdir(options.folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))
    _answer(answers, facts)
    for line in sys.stdin:
        _alarm(options.limit)
        try:
            found = _serve(machine, json.loads(line))
        except StateError as error:
            found = {"bad_state": str(error)}
        _alarm(0.0)
        _answer(answers, found)
    return 0


def _alarm(limit_s: float) -> None:
    """End this process after so much processor time; 0: no more."""
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    signal.setitimer(signal.ITIMER_REAL, limit_s * 10)


def _serve(machine: GameMachine, request: dict[str, Any]) -> dict[str, Any]:
    state = base64.b64decode(request["state"])
    match request["do"]:
        case "act":
            return _as_json(machine.act(state, request["command"]))
        case "see":
            seen = machine.see(state)
            return {"look": seen.look, "inventory": seen.inventory, "key": seen.key}
        case "legal":
            return {"legal": machine.legal(state)}
    raise ValueError(request["do"])


def _as_json(reply: GameReply) -> dict[str, Any]:
    return {
        "state": base64.b64encode(reply.state).decode(),
        "text": reply.text,
        "score": reply.score,
        "over": reply.over,
        "halted": reply.halted,
    }


def _answer(answers: Any, found: dict[str, Any]) -> None:
    answers.write(json.dumps(found) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
