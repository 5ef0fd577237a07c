"""Runs of RL as job programs: what they publish, told apart by its bytes, and kills."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S
from tests.torch.trl.jobs import launch, start

from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.program import read_rows


def digests(root: Path) -> dict[str, str]:
    """Of all that is published, with the seconds left out."""
    found = {}
    for path in sorted((root / "data").rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.name == "curve.jsonl":
                rows = [{**row, "seconds": None} for row in read_rows(path)]
                content = json.dumps(rows).encode()
            name = str(path.relative_to(root / "data"))
            found[name] = hashlib.sha256(content).hexdigest()
    return found


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
    status, _, errors = launch(job, program)
    assert status == 0, errors
