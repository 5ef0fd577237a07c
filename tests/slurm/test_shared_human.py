"""A human that is a model, as a shared server on a real SLURM: it dies while agents talk to it.

Its clients wait for the next one and go on: no episode counts as failed, and what they make is what
they make where nothing dies.
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
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S, wait_for
from tests.support.shared_human import EPISODES, begun, told, trajectories, write_spec
from tiny_plan import processes_of

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]


def test_a_human_that_dies_is_waited_for(tmp_path: Path, cluster: Cluster, profile: Path) -> None:
    require_software("model.scratch")
    spec = write_spec(tmp_path)
    file = profile / "config.yaml"
    text = file.read_text().replace("mem_mb: 1000, runtime: 5", "mem_mb: 8000, runtime: 60")
    file.write_text(
        text.replace("slurm_partition: short", "slurm_partition: main")
        + "set-resources:\n  server:\n    slurm_extra: \"'--exclude=n1,n2'\"\n"
    )
    calm, store = tmp_path / "calm", tmp_path / "store"
    agentc("run", spec, "--store", calm, "--plain")
    before = {job.id for job in cluster.history()}
    command = Path(sys.executable).with_name("agentc")
    words: list[str | Path] = ["run", spec, "--plain", "--store", store, "--profile", profile]
    process = subprocess.Popen(
        [command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        wait_for(lambda: begun(store) == 2 or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        pids = [told(store)["pid"]]
        pids += [pid for pid, line in processes_of(store).items() if "--delay 0.5" in line]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0, said
    jobs = [job for job in cluster.history() if job.id not in before]
    servers = [job for job in jobs if job.name.startswith("agentc-server-human")]
    assert [job.state for job in servers] == ["FAILED", "COMPLETED"]
    made = trajectories(store)
    assert len(made) == 2
    for key, content in made.items():
        rows = [json.loads(line) for line in content.splitlines()]
        assert len(rows) == EPISODES
        assert {row["error"] for row in rows} == {None}
        assert {row["report"]["human"]["replies"] for row in rows} == {2}
        manifest = json.loads(
            (store / "objects" / "rollout" / key / "artifact.json").read_text("utf-8")
        )
        assert manifest["attempts"] > 1, "it continued from its journal"
    assert made == trajectories(calm)
    assert cluster.queue() == []
