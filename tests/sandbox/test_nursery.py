"""Children of a nursery: judged as in a box of their own, with nothing of one another."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import wait_for

from agentc.runtime.sandbox.boxes import CodeBox
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc.runtime.sandbox.process import BoxedLimits, BoxError
from agentc_backends.environments.code_tests.calls import (
    CallLimits,
    CallResult,
    NurseryPool,
    make_calls,
    nursery_of,
)

_PATIENT = CallLimits(seconds=5.0, wall_seconds=300.0)
_DOUBLE = "def f(x): return 2 * x"
_SOURCES = [
    _DOUBLE,
    "def f(x):\n    return {'a': [x, (x, 1.5)], 2: {x}}",
    "def f(x): return undefined",
    "def f(x): return len(bytearray(1 << 30))",
    "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return os.getpid() > 0",
    "import os\ndef f(x):\n    os.kill(os.getpid(), 11)",
    "import os\ndef f(x):\n    return os.fork()",
    "import os\ndef f(x):\n    os.write(3, b'v 1\\n' * x); return x",
    "def f(x): return 'a' * 10 ** 6",
    "def f(:",
]
# Built from two halves, so that the needle itself is not what is found.
_SEARCH = """
import gc, os, sys
def f(first, second):
    needle = first + second
    held = [each for each in gc.get_objects() if type(each) is dict]
    texts = [t for each in held for t in [*each, *each.values()] if type(t) in (str, bytes)]
    frames, frame = [], sys._getframe(1)
    while frame: frames.append(repr(frame.f_locals)[:10**6]); frame = frame.f_back
    seen = any(needle in (t if type(t) is str else t.decode("latin-1")) for t in texts + frames)
    opened = []
    for number in range(256):
        try: os.fstat(number)
        except OSError: continue
        opened.append(number)
    return seen, opened
"""


@pytest.fixture
def nursery(each_box: CodeBox) -> Iterator[BoxNursery]:
    with nursery_of(each_box, _PATIENT) as made:
        yield made


def test_children_are_judged_as_boxes_are(each_box: CodeBox, nursery: BoxNursery) -> None:
    for source in _SOURCES:
        calls = ["f(1)", "f(2)", "f(3)"]
        alone = make_calls(each_box, source, calls, _PATIENT)
        forked = make_calls(nursery, source, calls, _PATIENT)
        assert _told(forked) == _told(alone), source


def test_a_child_that_does_not_end_costs_its_own_test_alone(nursery: BoxNursery) -> None:
    source = "import time\ndef f(x):\n    if x == 1:\n        while True: pass\n    "
    limits = CallLimits(seconds=0.3, wall_seconds=300.0)
    found = make_calls(nursery, source + "return x", ["f(0)", "f(1)", "f(2)"], limits)
    assert [result.failure for result in found] == [None, "timeout", None]
    sleeps = "import time\ndef f():\n    time.sleep(1e6)"
    assert make_calls(nursery, sleeps, ["f()"], CallLimits(5.0, 0.3))[0].failure == "timeout"
    assert make_calls(nursery, _DOUBLE, ["f(4)"], _PATIENT)[0].value == 8


def test_a_child_finds_nothing_of_the_one_before(nursery: BoxNursery) -> None:
    """Its parent never reads a job, so there is nothing of one to inherit."""
    canary = "kettle-7431-canary"
    source = f"CANARY = {canary!r}\ndef f(): return CANARY"
    assert make_calls(nursery, source, ["f()"], _PATIENT)[0].value == canary
    asked = [f"f({canary[:9]!r}, {canary[9:]!r})"]
    # What is asked holds the halves alone.
    assert make_calls(nursery, _SEARCH, asked, _PATIENT)[0].value == (False, [0, 1, 2, 3])
    # And the search finds what is there.
    own = f"CANARY = {{'it': {canary!r}}}\n{_SEARCH}"
    assert make_calls(nursery, own, asked, _PATIENT)[0].value[0]


def test_what_a_child_says_too_much_is_nobodys(nursery: BoxNursery) -> None:
    """Not the next child's first line, for one."""
    floods = "import os\ndef f(x):\n    os.write(3, b'v 7\\nready\\n' * 500); return x"
    for _ in range(3):
        make_calls(nursery, floods, ["f(1)"], _PATIENT)
        assert make_calls(nursery, _DOUBLE, ["f(4)"], _PATIENT)[0].value == 8


def test_nothing_is_left_of_a_nursery(each_box: CodeBox) -> None:
    before = _descriptors()
    with nursery_of(each_box, _PATIENT) as made:
        pid = made._parent.pid
        make_calls(made, _DOUBLE, ["f(1)"], _PATIENT)
    assert _descriptors() == before
    assert not Path(f"/proc/{pid}").exists()


def test_a_nursery_that_broke_is_followed_by_another(each_box: CodeBox) -> None:
    places = NurseryPool(each_box, _PATIENT, 1)
    seen: list[object] = []

    def double(place: object) -> CallResult:
        seen.append(place)
        return make_calls(place, _DOUBLE, ["f(4)"], _PATIENT)[0]  # type: ignore[arg-type]

    assert places.run(double).value == 8
    (first,) = seen
    assert isinstance(first, BoxNursery)
    os.kill(first._parent.pid, signal.SIGKILL)
    wait_for(lambda: not first._parent.running())
    with pytest.raises(BoxError):
        first.start(None, BoxedLimits())
    assert places.run(double).value == 8
    assert seen[1] is not first
    assert isinstance(seen[1], BoxNursery)
    places.close()


def _told(results: tuple[CallResult, ...]) -> list[object]:
    return [(one.value, one.failure, one.detail) for one in results]


def _descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())
