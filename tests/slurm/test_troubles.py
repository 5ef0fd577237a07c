"""What befalls a run on a real SLURM without any daemon dying: a node is drained and returned, a
job needs more memory than it asked for, the store's disk fills up, files show late elsewhere."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from node import Node, fuse_python, why_impossible
from tests.slurm.cluster import Cluster
from tests.slurm.test_runs import assert_nothing_left, running
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan

from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]
ENVIRONMENTS = os.environ.get("AGENTC_SOFTWARE")
DELAY_S = 3.0


def on(profile: Path, node: str) -> str:
    """The profile's word for `run_all`, with all jobs on one node."""
    file = profile / "config.yaml"
    file.write_text(
        file.read_text().replace(
            "slurm_partition: short", f"slurm_partition: main, slurm_extra: \"'--nodelist={node}'\""
        )
    )
    return f"profile={profile}"


def test_node_is_drained_and_returned(plan: TinyPlan, cluster: Cluster, profile: Path) -> None:
    """The job at work there is let finish; the next one waits until the node is back."""
    plan.job("before", rows=60, delay=0.1, resources={"gpus": 2})
    plan.job("after", rows=1, inputs={"x": ["before"]}, kind="pair")
    process = plan.start_all(on(profile, "n2"))
    wait_for(lambda: running(plan) == ["before"])
    cluster.command("scontrol", "update", "nodename=n2", "state=drain", "reason=test")
    wait_for(lambda: plan.published("before"))
    wait_for(lambda: cluster.states()["n2"].startswith("drained"))
    key = plan.object("after").split("/")[1]
    wait_for(lambda: [job for job in cluster.queue() if key in job.comment])
    time.sleep(2)
    (queued,) = (job for job in cluster.queue() if key in job.comment)
    assert queued.state == "PENDING"
    assert process.poll() is None
    cluster.command("scontrol", "update", "nodename=n2", "state=resume")
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert [plan.manifest(name)["attempts"] for name in ("before", "after")] == [1, 1]
    assert_nothing_left(plan, cluster)


def test_job_that_needs_more_memory_than_it_asked_for(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    if not cluster.holds_to_memory:
        pytest.skip("control groups cannot be made here: nothing holds a job to its memory")
    greedy = "data = b'x' * (1 << 30); import time; time.sleep(120)"
    python = os.path.realpath("/proc/self/exe")
    plan.job("small", rows=1)
    plan.job("greedy", run=[python, "-c", greedy], resources={"mem_mb": 400})
    done = plan.run_all("keep-going", f"profile={profile}")
    assert done.returncode == 3, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert "ran out of memory: the kernel killed a process for going over the limit of 400" in said
    assert "Raise `placement: {mem_mb: ...}`" in said
    assert plan.published("small")
    assert_nothing_left(plan, cluster)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted tmpfs of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "agentc-test", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk(
    small_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cluster: Cluster,
    profile: Path,
) -> None:
    """Store, plan and Snakemake's own files lie on the disk that fills up."""
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "software"))
    plan = TinyPlan(small_disk)
    plan.job("first", rows=1)
    plan.job("second", rows=400, delay=0.02, inputs={"x": ["first"]}, kind="pair")
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: running(plan) == ["second"])
    ballast = small_disk / "ballast"
    state = os.statvfs(small_disk)
    ballast.write_bytes(b"x" * (state.f_bavail * state.f_frsize - 20_000))
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3, said
    assert "no space is left on its file system (ENOSPC" in said
    assert "agentc store gc" in said
    assert plan.published("first")
    ballast.unlink()
    done = plan.run_all(f"profile={profile}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert plan.manifest("first")["attempts"] == 1
    assert len((plan.data("second") / "trajectories.jsonl").read_text().splitlines()) == 400
    assert_nothing_left(plan, cluster)


@pytest.fixture
def late(plan: TinyPlan, cluster: Cluster, tmp_path: Path) -> Iterator[Node]:
    """The nodes n1 and n2, and the one that submits (which is yielded), see the store through
    mounts of their own, which show late what others make."""
    impossible = why_impossible()
    if impossible is not None:
        pytest.skip(f"a file system that shows files late: {impossible}")
    python = fuse_python(Path(ENVIRONMENTS or tmp_path / "fuse"))
    backing, shared = tmp_path / "backing", tmp_path / "shared"
    plan.store = shared / "store"
    host = socket.gethostname()
    here, *others = (Node(python, host, backing, shared, DELAY_S) for _ in range(3))
    for name, node in zip(("n1", "n2"), others, strict=True):
        cluster.kill_node(name)
        cluster.start_node(name, node.argv())
    cluster.wait_idle()
    yield here
    for node in (here, *others):
        node.power_off()
    for name in ("n1", "n2"):
        cluster.kill_node(name)


def test_files_of_other_nodes_show_late(
    plan: TinyPlan, cluster: Cluster, profile: Path, late: Node, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    counted = {"journal": str(journal), "units": 3, "delay": 0.2, "program": "counted.py"}
    plan.job("first", **counted)
    parts = [f"part{number}" for number in range(3)]
    for number, name in enumerate(parts):
        plan.job(
            name, inputs={"x": ["first"]}, say=number, kind="expert", resources={"gpus": 2},
            **counted,
        )  # fmt: skip
    plan.job("join", inputs={"x": parts}, kind="pair", **counted)
    before = {job.id for job in cluster.history()}
    process = late.start(plan.run_all_argv(f"profile={profile}"))
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    work = [line for line in journal.read_text().splitlines() if line.startswith("unit")]
    assert len(work) == len(set(work)) == 3 * 5, "each key was computed once"
    assert {job.nodes for job in cluster.history() if job.id not in before} == {"n1", "n2"}
    store = StoreLayout(tmp_path / "backing" / "store")
    found, problems = list_objects(store)
    assert problems == []
    assert {stored.name for stored in found} == {plan.object(job["id"]) for job in plan.jobs}
    assert [fault for stored in found for fault in verify_object(stored)] == []
    assert cluster.queue() == []
