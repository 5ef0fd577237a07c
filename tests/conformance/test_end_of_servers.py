"""Servers that the kit starts end with the process that checks them, however that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.patience import wait_for

from agentc.runtime.machine.process import started

ROOT = Path(__file__).parents[2]
WORLD = Path(__file__).with_name("counting_world.py")
CHECKING = """
import sys, time
from pathlib import Path
from agentc.conformance.environment_process import served
from agentc.runtime.machine.process import children
with served([sys.argv[1], "--ready-file", "{ready_file}"], Path(sys.executable)):
    print(*children(), flush=True)
    time.sleep(1e6)
"""


def test_a_server_ends_with_whoever_checks_it() -> None:
    paths = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
    checking = subprocess.Popen(
        [sys.executable, "-c", CHECKING, str(WORLD)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert checking.stdout is not None
    (server,) = map(int, checking.stdout.readline().split())
    assert started(server)
    checking.kill()
    checking.wait()
    try:
        wait_for(lambda: not started(server))
    finally:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
