"""A shared server over two nodes of a real SLURM: a rank on each, one step for the other node, and
nothing left when it ends. Its program is a stand-in; vLLM's ranks: test_vllm_server.py."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, drivers_of, processes_of

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]
RANKS: dict[str, Any] = {
    "nodes": 2,
    "each": ["--rank", "{rank}", "--nodes", "{nodes}", "--meet", "{first_node}:{meeting_port}"],
    "others": ["--headless"],
    "variables": {},
    "sizes": {"pipeline_parallel": 2},
}


_STRIPPED = "env | grep -o '^SLURM_[A-Z0-9_]*' | grep -v _JOB_ID | sed 's/^/-u /'"


def test_a_server_within_its_job_has_a_rank_on_each_of_the_jobs_nodes(
    plan: TinyPlan, cluster: Cluster, tmp_path: Path
) -> None:
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    lease = plan.lease(script="ranked.py", ranks=RANKS)
    plan.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    plan.write()
    # As Snakemake's plugin does: one task of a step on the first node, without its variables.
    words = shlex.join(plan.argv("act", None))
    log = tmp_path / "log.txt"
    number = cluster.command(
        *("sbatch", "--parsable", "--partition=main", "--nodes=2", "--ntasks=2", "--mem=500"),
        *("--cpus-per-task=1", "--time=5", f"--output={log}"),
        f"--wrap=env $({_STRIPPED}) srun -n1 --cpu-bind=q --cpus-per-task=1 --nodes=2 {words}",
    ).strip()
    wait_for(lambda: cluster.queue() == [])
    shown = cluster.command("scontrol", "show", "job", "-o", number)
    assert "JobState=COMPLETED" in shown, log.read_text()
    (served,) = (plan.store / "objects").rglob("policy.log")
    assert "I am 0 of 2" in served.read_text()
    assert ": I am 1 of 2" in served.read_text()


def test_a_shared_server_runs_a_rank_on_each_of_its_nodes(
    plan: TinyPlan, cluster: Cluster, profile: Path, tmp_path: Path
) -> None:
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    sign = tmp_path / "sign"
    lease = plan.lease(
        script="ranked.py", ranks=RANKS, arguments=["--die-when", str(sign), "--host", "{host}"]
    )
    plan.job("act", inputs={"model": ["model"]}, leases=[lease], call=True, rows=100, delay=0.1)
    server = plan.share("tiny.model", "act")
    server["asked"] = {"nodes": {"value": 2, "file": "spec.yaml", "line": 1}}
    folder = plan.store / "servers" / str(os.getuid()) / str(server["key"]) / "1"
    before = {job.id for job in cluster.history()}

    process = plan.start_all(f"profile={profile}")
    rows = plan.staging("act") / "work" / "rows.jsonl"
    wait_for(lambda: rows.exists() and rows.read_text().count("\n") > 2)
    (job,) = [each for each in cluster.queue() if each.name == "agentc-server-tiny.model"]
    assert "NumNodes=2" in cluster.command("scontrol", "show", "job", "-o", str(job.id))
    log = (folder / "logs" / "policy.log").read_text()
    endpoint = json.loads((folder / "endpoint.json").read_text())
    assert "I am 0 of 2" in log
    (line,) = [each for each in log.splitlines() if "I am 1 of 2" in each]
    assert line.startswith("rank 1 on n")
    assert not line.startswith(f"rank 1 on {endpoint['node']}:"), "on the other node"

    # The second rank dies: the server is started again on both nodes, and the work goes on.
    sign.touch()
    wait_for(lambda: "uncorrectable" in (folder / "logs" / "policy.log").read_text())
    sign.unlink()
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    log = (folder / "logs" / "policy.log").read_text()
    assert "exited with 5, which ends the server" in log
    assert log.count("I am 1 of 2") == 2
    wait_for(lambda: cluster.queue() == [])
    wait_for(lambda: not processes_of(plan.store) and not drivers_of(plan.store))
    servers = [each for each in cluster.history() if each.id not in before]
    assert [each.state for each in servers if "server" in each.name] == ["COMPLETED"]
