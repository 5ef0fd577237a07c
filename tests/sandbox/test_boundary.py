"""What an answer can open of other processes, and that no job of its own enters a nursery.

Played by an ordinary user: of processes that root starts, which then become nobody, the descriptors
stay root's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sandbox.conftest import Player
from tests.support.patience import wait_for

from agentc.runtime.sandbox.boxes import KINDS, CodeBox
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc.runtime.sandbox.process import BoxedLimits, BoxedProcess

_SLEEPS = "def main(answers, data):\n    import time\n    time.sleep(600)\n"


@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_reaches_its_nursery(play: Player, kind: str) -> None:
    played = play("nobody", "boundary", kind)
    if "missing" in played:
        pytest.skip(f"no {kind}")
    assert played["alone"] == [[], []], "its own descriptors, and its parent's"
    assert played["forked"] == [[], []]
    untouched = [[27, 64], ["pass", "pass"]]
    assert played["planted"] == untouched, "the job of an answer was run in place of another one"
    assert played["stolen"] == untouched, "an answer took the job of a reference"


def test_sandboxed_processes_are_not_dumpable(each_box: CodeBox) -> None:
    """Then all that /proc has of them is root's: nobody attaches to them or reads their memory."""
    with BoxedProcess(each_box, _SLEEPS, None, BoxedLimits()) as alone:
        assert _owner(alone.pid) == (0, 0)
    with BoxNursery(each_box, _SLEEPS) as nursery:
        assert _owner(nursery._parent.pid) == (0, 0)
        with nursery.start(None, BoxedLimits()) as child:
            wait_for(lambda: child._clocks() and child.pid != nursery._parent.pid)
            assert _owner(child.pid) == (0, 0)


def _owner(pid: int) -> tuple[int, int]:
    told = Path(f"/proc/{pid}/environ").stat()
    return told.st_uid, told.st_gid
