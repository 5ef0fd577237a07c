"""Nothing is left running when whoever judges is killed: the kernel kills it too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.sandbox.conftest import ROOT
from tests.support.patience import wait_for

from agentc.runtime.sandbox.boxes import KINDS

_JUDGE = """
import sys, time
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc.runtime.sandbox.probe import probe_kind
from agentc.runtime.sandbox.process import BoxedLimits, BoxedProcess
box = probe_kind(sys.argv[1]).box
if box is None:
    print("missing", flush=True)
    sys.exit()
limits = BoxedLimits()
program = '''
def main(answers, data):
    import ctypes, signal, time
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    time.sleep(120)
'''
if sys.argv[2] == "forked":
    nursery = BoxNursery(box, program)
    held = nursery.start(None, limits)
else:
    held = BoxedProcess(box, program, None, limits)
print("started", flush=True)
time.sleep(1e6)
"""
# It becomes the parent of whatever its judge leaves, and says how each of those ended.
_OUTER = """
import ctypes, os, signal, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
judge = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE)
print(judge.stdout.readline().decode().strip(), flush=True)
judge.kill()
ends = []
while True:
    try:
        ends.append(os.waitpid(-1, 0)[1])
    except ChildProcessError:
        break
print(*ends, flush=True)
"""


@pytest.mark.parametrize("start", ["alone", "forked"])
@pytest.mark.parametrize("kind", KINDS)
def test_boxes_end_with_whoever_started_them(kind: str, start: str) -> None:
    outer = subprocess.Popen(
        [sys.executable, "-c", _OUTER, _JUDGE, kind, start],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler")},
    )
    try:
        assert outer.stdout is not None
        said = outer.stdout.readline().strip()
        wait_for(lambda: outer.poll() is not None)
        if said == "missing":
            pytest.skip(f"no {kind}")
        assert said == "started"
        ends = outer.stdout.read().split()
        assert len(ends) >= 2, "the judge, and what it left"
        assert set(ends) == {str(int(signal.SIGKILL))}
    finally:
        if outer.poll() is None:
            os.killpg(outer.pid, signal.SIGKILL)
            outer.wait()
