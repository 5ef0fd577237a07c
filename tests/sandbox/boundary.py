"""A process that attacks the boundary between answers and their nursery, and prints the outcome.

`python -m tests.sandbox.boundary KIND`. An answer tries to put a job of its own where its nursery
reads jobs, and to take the next one, a reference's, from there. Both worked where the channels were
pipes, which `/proc/PID/fd` opens for whoever may trace the process.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from agentc.runtime.sandbox.probe import probe_kind
from agentc_backends.environments.code_tests.calls import (
    CallLimits,
    CallResult,
    make_calls,
    nursery_of,
)
from agentc_backends.environments.code_tests.suite import suite_of, verdicts

_LIMITS = CallLimits(seconds=2.0, wall_seconds=60.0)
_LIST = """
import os, stat
def f(who):
    found = []
    for number in range(64):
        for mode in (os.O_RDONLY, os.O_WRONLY):
            try:
                held = os.open("/proc/%s/fd/%d" % (who or os.getppid(), number), mode | 2048)
            except OSError:
                continue
            if not stat.S_ISCHR(os.fstat(held).st_mode):
                found.append(number)
            os.close(held)
    return sorted(set(found))
"""
_PLANT = """
import marshal, os
SOURCE = %r
def f(n):
    part = {"source": SOURCE, "calls": ["f(1)", "f(2)"], "namespace": "fresh", "code": b"",
            "tells": False, "first": 0, "bytes": 65536}
    text = marshal.dumps({"data": [part], "seconds": 60, "memory": 512 << 20}, 2)
    if n == 1:
        for number in range(4, 64):
            try:
                held = os.open("/proc/%%d/fd/%%d" %% (os.getppid(), number), os.O_WRONLY | 2048)
                os.write(held, b"j" + len(text).to_bytes(8, "little") + text)
            except OSError:
                pass
    return n * 2
"""
_WRONG = "def f(n):\n    return 0\n"
# Run where the next job should be: it takes that job, and answers in its place.
_THIEF = """
import os, select, time
def f(_):
    os.write(3, b"ready\\n")
    held = []
    for number in range(4, 64):
        try:
            held.append(os.open("/proc/%d/fd/%d" % (os.getppid(), number), os.O_RDONLY | 2048))
        except OSError:
            pass
    until = time.monotonic() + 5
    while held and time.monotonic() < until:
        for each in select.select(held, [], [], 0.1)[0]:
            try:
                os.read(each, 1 << 16)
            except OSError:
                continue
            os.write(3, b"c \\n" + b'v ["i","0x2a"]\\n' * 2)
            os._exit(0)
"""


def main(kind: str) -> None:
    """Prints one JSON object."""
    box = probe_kind(kind).box
    if box is None:
        print(json.dumps({"missing": kind}))
        return
    found: dict[str, Any] = {"alone": _opened(make_calls(box, _LIST, _ASKED, _LIMITS))}
    for attack, planted in (("planted", _WRONG), ("stolen", _THIEF)):
        with nursery_of(box, _LIMITS) as nursery:
            found["forked"] = _opened(make_calls(nursery, _LIST, _ASKED, _LIMITS))
            first = suite_of(nursery, "def f(n):\n    return n * 2\n", ("f(1)", "f(2)"), _LIMITS)
            verdicts(nursery, first, _PLANT % planted)
            second = suite_of(nursery, "def f(n):\n    return n ** 3\n", ("f(3)", "f(4)"), _LIMITS)
            right = verdicts(nursery, second, "def f(n):\n    return n * n * n\n")
            found[attack] = [list(second.expected), list(right)]
    print(json.dumps(found))


_ASKED = ["f('self')", "f('')"]


def _opened(results: tuple[CallResult, ...]) -> list[Any]:
    return [result.failure or result.value for result in results]


if __name__ == "__main__":
    main(sys.argv[1])
