"""Runs of RL as job programs: what they publish (its digests are `tests/support/run_digests.py`'s),
and kills."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S
from tests.torch.trl.jobs import start
from tests.torch.trl.programs import run_program

from agentc.runtime.contracts.artifacts import check_artifact


def contract(root: Path, told: Mapping[str, Any]) -> None:
    """Raise ContractError where what is published is no PolicyRun."""
    check_artifact("PolicyRun", root / "data", told["contract"], {}, {})


def kill_and_rerun(job: Path, moments: list[float], program: str, seen: str) -> None:
    """Kill it that long after its work folder held the file `seen`, then let it end."""
    folder = job.parent
    for moment in moments:
        process = start(job, program)
        deadline = time.monotonic() + PATIENCE_S
        while not (folder / "work" / seen).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    status, _, errors = run_program(job, program)
    assert status == 0, errors
