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
from tests.support.shared_human import EPISODES, begun, told, trajectories, write_spec
from tiny_plan import processes_of

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_spec(tmp_path_factory.mktemp("human"))


@pytest.fixture(scope="module")
def undisturbed(spec: Path) -> dict[str, bytes]:
    """What the rollouts make where nothing dies."""
    require_software("model.scratch")
    store = spec.with_name("calm")
    agentc("run", spec, "--store", store, "--plain")
    return trajectories(store)


@pytest.mark.parametrize("hit", ["program", "program and host"])
def test_a_human_that_is_killed_is_waited_for(
    hit: str, spec: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    command = Path(sys.executable).with_name("agentc")
    process = subprocess.Popen(
        [command, "run", spec, "--plain", "--store", tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        wait_for(lambda: begun(tmp_path) or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        pids = [pid for pid, line in processes_of(tmp_path).items() if "--delay 0.5" in line]
        assert pids
        if hit != "program":
            pids.insert(0, told(tmp_path)["pid"])
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0, said
    made = trajectories(tmp_path)
    assert made == undisturbed
    assert len(made) == 2
    for content in made.values():
        rows = [json.loads(line) for line in content.splitlines()]
        assert len(rows) == EPISODES
        assert {row["error"] for row in rows} == {None}
