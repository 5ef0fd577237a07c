"""Shared servers: started once for several jobs, watched by all of them, gone when nobody needs
them, whoever was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, processes_of

pytestmark = pytest.mark.slow

CLIENTS = ("left", "right")


@pytest.fixture
def shared(plan: TinyPlan, tmp_path: Path) -> Iterator[TinyPlan]:
    """Two jobs of some seconds on one shared server that counts its starts in `starts`."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    lease = plan.lease(arguments=["--count", str(tmp_path / "starts")])
    for name in CLIENTS:
        plan.job(
            name, inputs={"model": ["model"]}, leases=[lease], call=True, rows=12, delay=0.1,
            say=name,
        )  # fmt: skip
    plan.share("tiny.model", *CLIENTS)
    yield plan
    # Copies of a server are nobody's children: they must be gone by themselves.
    wait_for(lambda: not hosts(plan))


def folder(plan: TinyPlan) -> Path:
    return plan.store / "servers" / str(os.getuid()) / str(plan.servers[0]["key"])


def state(plan: TinyPlan, copy: int = 1) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder(plan) / str(copy) / "state.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def hosts(plan: TinyPlan) -> list[int]:
    """Processes of copies and keepers of this store."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"agentc.runtime.serve" in words and str(plan.store).encode() in words:
            found.append(int(entry.name))
    return found


def server_pid(plan: TinyPlan) -> int:
    """The process of the server's program."""
    marked = processes_of(plan.store)
    (pid,) = (pid for pid, line in marked.items() if "server.py" in line)
    return pid


def at_work(plan: TinyPlan, rows: int = 2) -> bool:
    """Whether every client has asked the server a few times."""
    return all(
        (plan.staging(name) / "work" / "rows.jsonl").exists()
        and len((plan.staging(name) / "work" / "rows.jsonl").read_text().splitlines()) >= rows
        for name in CLIENTS
    )


def start_to_wait(plan: TinyPlan, go_on: Path) -> list[subprocess.Popen[str]]:
    """The clients, each of which has asked the server twice and waits for a file to go on."""
    for job in plan.jobs[1:]:
        job["config"]["go_on"] = str(go_on)
    running = [plan.start(name) for name in CLIENTS]
    wait_for(lambda: at_work(plan))
    return running


def test_jobs_share_one_start(shared: TinyPlan, tmp_path: Path) -> None:
    running = [shared.start(name) for name in CLIENTS]
    wait_for(lambda: state(shared).get("state") == "ready")
    endpoint = folder(shared) / "1" / "endpoint.json"
    token = json.loads(endpoint.read_text())["token"]
    assert endpoint.stat().st_mode & 0o777 == 0o600
    assert json.loads(endpoint.read_text())["url"].startswith("http://127.0.0.1:")
    said = [process.communicate(timeout=PATIENCE_S)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert said == ["", ""]
    assert (tmp_path / "starts").read_text() == "x"
    wait_for(lambda: state(shared).get("state") == "ended")
    assert not endpoint.exists()
    for name in CLIENTS:
        (lease,) = shared.manifest(name)["leases"]
        assert (lease["role"], lease["scope"]) == ("policy", "shared")
        assert lease["lock"] == shared.stacks["empty"]["lock"]
    logs = [path for path in shared.store.rglob("*.log") if path.is_file()]
    assert logs
    assert not [path for path in logs if token in path.read_text()]


def test_what_a_shared_environment_says_is_in_the_manifests(plan: TinyPlan) -> None:
    """What it is, and what it notes besides, as of a server that the job starts itself."""
    says = {"served": {"name": "craft"}, "facts": {"renderer": "dark"}}
    words = ["--identity", json.dumps(says["served"]), "--facts", json.dumps(says["facts"])]
    lease = plan.lease("environment", arguments=words, expect={"name": "craft"})
    plan.job("alone", leases=[lease])
    plan.job("left", leases=[dict(lease)])
    plan.share("tiny.world", "left", role="environment")
    for name in ("alone", "left"):
        assert plan.run(name).returncode == 0
        (told,) = plan.manifest(name)["leases"]
        assert {part: told.get(part) for part in says} == says, name
    wait_for(lambda: not hosts(plan))


def test_bare_snakemake_runs_it_beside_its_clients(shared: TinyPlan, tmp_path: Path) -> None:
    """With one core a server that counted among the cores would wait for clients that wait."""
    shared.write_compiled()
    argv = [sys.executable, "-m", "snakemake", "--cores", "1", "--keep-incomplete", "--nolock"]
    argv += ["--rerun-triggers", "mtime", "--config", f"store={shared.store}"]
    done = subprocess.run(
        argv, cwd=shared.folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(map(shared.published, CLIENTS))
    assert (tmp_path / "starts").read_text() == "x"


def test_killed_server_is_started_again_and_its_clients_go_on(
    shared: TinyPlan, tmp_path: Path
) -> None:
    running = start_to_wait(shared, tmp_path / "go_on")
    os.kill(server_pid(shared), signal.SIGKILL)
    (tmp_path / "go_on").touch()
    for process in running:
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, said
        assert "was killed by signal 9; its last lines" in said
        assert "serving" in said
        assert "once more, try 2 of 3" in said
    assert (tmp_path / "starts").read_text() == "xx"


def test_killed_host_is_replaced_by_a_client(shared: TinyPlan, tmp_path: Path) -> None:
    running = start_to_wait(shared, tmp_path / "go_on")
    os.kill(state(shared)["pid"], signal.SIGKILL)
    (tmp_path / "go_on").touch()
    for process in running:
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, said
    assert (tmp_path / "starts").read_text() == "xx"


def test_server_that_dies_of_its_work_stops_the_run_with_its_last_words(
    shared: TinyPlan,
) -> None:
    lease = shared.servers[0]["lease"]
    lease["program"] = [*lease["program"], "--die-after-calls", "3"]
    done = shared.run_all("keep-going")
    assert done.returncode == 3, done.stdout
    assert "fell off the bus" in done.stderr
    assert "it had been started 3 times" in done.stderr
    assert not any(map(shared.published, CLIENTS))
    wait_for(lambda: not hosts(shared))


def test_server_that_cannot_start_fails_the_run_before_its_clients(shared: TinyPlan) -> None:
    lease = shared.servers[0]["lease"]
    lease["program"] = [*lease["program"], "--die-at-once"]
    done = shared.run_all()
    assert done.returncode == 3
    assert "no such device" in done.stderr
    assert not any(shared.status(name) for name in CLIENTS)
    wait_for(lambda: not hosts(shared))


def test_run_that_is_interrupted_leaves_no_server(shared: TinyPlan) -> None:
    for job in shared.jobs[1:]:
        job["config"]["rows"] = 600
    running = subprocess.Popen(shared.run_all_argv(), stdout=subprocess.PIPE, text=True)
    wait_for(lambda: at_work(shared))
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    wait_for(lambda: not hosts(shared))


@pytest.mark.parametrize("keeper", ["lives", "is killed"])
def test_run_that_is_killed_leaves_no_server(
    shared: TinyPlan, keeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_SERVER_LEASE_S", "3")
    for job in shared.jobs[1:]:
        job["config"]["rows"] = 600
    running = subprocess.Popen(shared.run_all_argv(), stdout=subprocess.PIPE, text=True)
    wait_for(lambda: at_work(shared))
    if keeper == "is killed":
        # Nobody is left to give the lease back: it runs out.
        for pid in set(hosts(shared)) - {state(shared)["pid"]}:
            os.kill(pid, signal.SIGKILL)
    running.kill()
    running.communicate()
    wait_for(lambda: not hosts(shared))
    assert state(shared)["state"] == "ended"
    # What was begun goes on from where it was.
    for job in shared.jobs[1:]:
        job["config"]["rows"] = 5
    assert shared.run_all().returncode == 0


def test_servers_listen_where_their_program_says(shared: TinyPlan) -> None:
    """A server that keeps to loopback is told apart from one that other nodes can reach."""
    from agentc.runtime.servers.server_process import LeaseError, ServerProcess

    ready = shared.folder / "policy.ready.json"
    ready.write_text(json.dumps({"host": "127.0.0.1", "port": 1}))
    lease = ServerProcess(
        shared.servers[0]["lease"], python=[], variables={}, model=None, folder=shared.folder,
        logs=shared.folder, host="10.1.2.3",
    )  # fmt: skip
    with pytest.raises(LeaseError, match=r"asked to listen on 10\.1\.2\.3 and listens on 127"):
        lease.read_ready_file()


def test_jobs_of_one_node_share_a_server_that_one_of_them_started(
    shared: TinyPlan, tmp_path: Path
) -> None:
    """Within a SLURM job the server lives as long as that job, which sees its guests out."""
    shared.servers[0]["scope"] = "node"
    joined, free = tmp_path / "joined", tmp_path / "free"
    until = "until test -e %s; do sleep 0.1; done"
    for job, line in zip(
        shared.jobs[1:], (until % joined, f"touch {joined}; {until % free}"), strict=True
    ):
        job["config"]["run"] = ["/bin/sh", "-c", line]
    first = shared.start("left", SLURM_JOB_ID="1", SLURMD_NODENAME="n1")
    wait_for(lambda: (tmp_path / "starts").exists())
    guest = shared.start("right", SLURM_JOB_ID="2", SLURMD_NODENAME="n1")
    wait_for(lambda: shared.published("left"))
    assert guest.poll() is None
    assert first.poll() is None
    free.touch()
    assert (guest.wait(timeout=PATIENCE_S), first.wait(timeout=PATIENCE_S)) == (0, 0)
    assert (tmp_path / "starts").read_text() == "x"
    for process in (first, guest):
        process.communicate()


def test_each_node_has_a_server_of_its_own(shared: TinyPlan, tmp_path: Path) -> None:
    shared.servers[0]["scope"] = "node"
    running = [
        shared.start(name, SLURMD_NODENAME=node)
        for name, node in zip(CLIENTS, ("n1", "n2"), strict=True)
    ]
    assert [process.wait(timeout=PATIENCE_S) for process in running] == [0, 0]
    assert (tmp_path / "starts").read_text() == "xx"
    for process in running:
        process.communicate()


def test_another_queue_never_leaves_a_server_on_the_submit_host(shared: TinyPlan) -> None:
    shared.write()
    lease = folder(shared) / "leases/run"
    words = ["--plan", str(shared.path), "--store", str(shared.store), "--lease", str(lease)]
    done = subprocess.run(
        [sys.executable, "-m", "agentc.runtime.serve", "up", *words, "--server",
         str(shared.servers[0]["id"]), "--run", str(os.getpid()), "--executor", "cluster-generic"],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 1
    assert "tiny.model has `scope: shared`" in done.stderr
    assert "`executor: cluster-generic`" in done.stderr
    assert not folder(shared).exists(), "nothing was started"
