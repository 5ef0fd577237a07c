"""A human that is a model, as a shared server of this machine: killed while agents talk to it.

tests/slurm has the same where the server is a job of a queue.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from smoke import agentc, require_software
from tests.support.patience import PATIENCE_S, wait_for
from tests.support.shared_human import at_work, told, trajectories, write_spec
from tiny_plan import processes_of


@pytest.mark.slow
@pytest.mark.parametrize("hit", ["program", "program and host"])
def test_a_human_that_is_killed_is_waited_for(hit: str, tmp_path: Path) -> None:
    require_software("model.scratch")
    spec, calm, store = write_spec(tmp_path), tmp_path / "calm", tmp_path / "store"
    command = Path(sys.executable).with_name("agentc")
    process = subprocess.Popen(
        [command, "run", spec, "--plain", "--store", store],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        wait_for(lambda: at_work(store) or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        pids = [pid for pid, line in processes_of(store).items() if "--delay 0.5" in line]
        assert pids
        if hit != "program":
            pids.insert(0, told(store)["pid"])
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0, said
    agentc("run", spec, "--store", calm, "--plain")
    made = trajectories(store)
    assert len(made) == 2
    assert made == trajectories(calm)
    ends = [json.loads(line)["end"] for rows in made.values() for line in rows.splitlines()]
    assert "error" not in ends
