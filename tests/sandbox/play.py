"""A process that plays attempts, as whoever it is started as, and prints what came of them.

`python -m tests.sandbox.play KIND` in a box of that kind (`landlock:1`: as if the kernel knew no
more than that version; `landlock+forked`: by a nursery's children), `... play unboxed` without one:
those alone that are harmless, each in a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.sandbox.attempts import ROUNDS, here, source
from tests.sandbox.forgeries import judged_forgeries
from tests.sandbox.victims import Victims, victims

from agentc.runtime.sandbox.boxes import boxed_interpreter
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc.runtime.sandbox.probe import BoxProbe, probe_kind
from agentc_backends.environments.code_tests.calls import (
    CallLimits,
    Place,
    make_calls,
    nursery_of,
)
from agentc_backends.environments.code_tests.canaries import assert_holds

_SET_CHILD_SUBREAPER = 36


def main(kind: str) -> None:
    """Prints one JSON object."""
    with victims(os.getpid()) as aimed_at:
        os.environ["AGENTC_TOKEN"] = "canary-of-the-host"
        played = _unboxed(aimed_at) if kind == "unboxed" else _boxed(kind, aimed_at)
        print(json.dumps({**played, "harm": aimed_at.harm()}))


def _boxed(kind: str, aimed_at: Victims) -> dict[str, Any]:
    kind, _, forked = kind.partition("+")
    kind, _, version = kind.partition(":")
    found: BoxProbe = probe_kind(kind)
    box = found.box
    if box is None:
        return {"missing": f"{found.reason}; {found.remedy}"}
    if version:
        if int(box.version) < int(version):
            return {"missing": f"its version is {box.version}"}
        box = box._replace(version=version)
    # Whatever is left of a box becomes a child of this process.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    descriptors = _descriptors()
    place: Place = nursery_of(box, CallLimits()) if forked else box
    ended: dict[str, dict[str, str]] = {}
    for name, each in ROUNDS.items():
        attempts = here(each.attempts)
        results = make_calls(
            place,
            source(attempts, aimed_at.facts),
            [f"attempt_{index}()" for index in range(len(attempts))],
            CallLimits(seconds=each.seconds, wall_seconds=each.wall_seconds),
        )
        ended[name] = {
            attempt.name: result.failure or f"returned {result.value!r}"[:200]
            for attempt, result in zip(attempts, results, strict=True)
        }
    forged = judged_forgeries(place)
    assert_holds(place)
    if isinstance(place, BoxNursery):
        place.end()
    return {
        "ended": ended,
        "forged": forged,
        "children": _children(aimed_at),
        "descriptors": _descriptors() == descriptors,
        "facts": box.facts(),
    }


def _descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def _children(aimed_at: Victims) -> list[str]:
    """Processes below this one that are not its victim, zombies too."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    ).stdout
    own = (str(aimed_at.process.pid), "ps ")
    return [line for line in listed.splitlines() if not any(each in line for each in own)]


def _unboxed(aimed_at: Victims) -> dict[str, Any]:
    program = boxed_interpreter().program
    ended: dict[str, str] = {}
    for each in ROUNDS.values():
        for index, attempt in enumerate(here(each.attempts)):
            if attempt.unboxed:
                text = source(here(each.attempts), aimed_at.facts)
                text += f"\nattempt_{index}()\nos._exit(0)"
                said = subprocess.run([program, "-c", text], capture_output=True, text=True)
                ended[attempt.name] = (
                    "returned" if said.returncode == 0 else said.stderr.strip()[-200:]
                )
    return {"ended": ended}


if __name__ == "__main__":
    main(sys.argv[1])
