"""Shared servers on a real SLURM: a job of their own on another node than their clients, and what
becomes of the run when the server or its node dies."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, drivers_of, processes_of

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]

CLIENTS = ("left", "right")


@pytest.fixture
def shared(plan: TinyPlan, profile: Path, tmp_path: Path) -> TinyPlan:
    """Two jobs for the nodes n1 and n2, and their server for n3 or n4."""
    file = profile / "config.yaml"
    file.write_text(
        file.read_text() + "set-resources:\n  server:\n    slurm_partition: main\n"
        "    slurm_extra: \"'--exclude=n1,n2'\"\n"
    )
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    lease = plan.lease(arguments=["--count", str(tmp_path / "starts")])
    lease["program"] += ["--host", "{host}"]
    for name in CLIENTS:
        plan.job(
            name, inputs={"model": ["model"]}, leases=[lease], call=True, rows=100, delay=0.1,
            say=name,
        )  # fmt: skip
    plan.share("tiny.model", *CLIENTS)
    return plan


def told(plan: TinyPlan, file: str) -> dict[str, Any]:
    """What the server's only copy says of itself."""
    folder = plan.store / "servers" / str(os.getuid()) / str(plan.servers[0]["key"])
    try:
        found: dict[str, Any] = json.loads((folder / "1" / file).read_text())
    except (OSError, ValueError):
        return {}
    return found


def rows(plan: TinyPlan, name: str) -> int:
    try:
        return len((plan.staging(name) / "work" / "rows.jsonl").read_text().splitlines())
    except FileNotFoundError:
        return 0


def at_work(plan: TinyPlan) -> bool:
    return all(rows(plan, name) > 2 for name in CLIENTS)


def assert_nothing_left(plan: TinyPlan, cluster: Cluster) -> None:
    wait_for(lambda: cluster.queue() == [])
    wait_for(lambda: not processes_of(plan.store) and not drivers_of(plan.store))
    assert not told(plan, "endpoint.json")


def kill_server(plan: TinyPlan) -> None:
    """-9 to the server's program and to the process that would start it again."""
    pids = [told(plan, "state.json")["pid"]]
    pids += [pid for pid, line in processes_of(plan.store).items() if "server.py" in line]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_killed_server_of_another_node_is_submitted_again_by_a_client(
    shared: TinyPlan, cluster: Cluster, profile: Path, tmp_path: Path
) -> None:
    before = {job.id for job in cluster.history()}
    process = shared.start_all(f"profile={profile}")
    wait_for(lambda: at_work(shared))
    first = told(shared, "endpoint.json")
    assert first["node"] in ("n3", "n4")
    assert "127.0.0.1" not in first["url"]
    done = {name: rows(shared, name) for name in CLIENTS}
    kill_server(shared)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert (tmp_path / "starts").read_text() == "xx"
    for name in CLIENTS:
        manifest = shared.manifest(name)
        assert manifest["attempts"] > 1, "its program was started over"
        assert manifest["facts"]["rows"] > done[name], "and continued from where it was"
        assert set(manifest["leases"][0]["nodes"]) <= {"n3", "n4"}
    assert_nothing_left(shared, cluster)
    jobs = [job for job in cluster.history() if job.id not in before]
    servers = [job for job in jobs if job.name == "agentc-server-tiny.model"]
    assert [job.state for job in servers] == ["FAILED", "COMPLETED"]
    assert {job.nodes for job in jobs if job not in servers} <= {"n1", "n2"}
    assert first["token"] not in "".join(
        path.read_text() for path in shared.store.rglob("*.log") if path.is_file()
    )


def test_interrupted_run_takes_its_server_out_of_the_queue(
    shared: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    process = shared.start_all(f"profile={profile}")
    wait_for(lambda: at_work(shared))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, said
    assert_nothing_left(shared, cluster)


def test_lost_node_of_the_server_is_survived(
    shared: TinyPlan, cluster: Cluster, profile: Path, tmp_path: Path
) -> None:
    """SLURM queues the server's job again once it notices; its clients wait for that."""
    process = shared.start_all(f"profile={profile}")
    wait_for(lambda: at_work(shared))
    lost = told(shared, "endpoint.json")["node"]
    cluster.kill_node(lost)
    kill_server(shared)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert (tmp_path / "starts").read_text() == "xx"
    assert {tuple(shared.manifest(name)["leases"][0]["nodes"]) for name in CLIENTS} == {
        ("n4" if lost == "n3" else "n3",)
    }
    assert_nothing_left(shared, cluster)
