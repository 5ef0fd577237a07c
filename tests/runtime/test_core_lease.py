"""Servers of one machine bind threads to different cores, or to none."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S
from tiny_plan import TinyPlan

from agentc.runtime.machine.device_lease import CORES_VARIABLE, CoreLease, allowed_cores
from agentc.runtime.servers.server_process import ServerProcess


def test_no_two_have_a_core_at_a_time(tmp_path: Path) -> None:
    first, second, third = (CoreLease(tmp_path / "locks") for _ in range(3))
    assert first.acquire(2, [0, 1, 2]) == (0, 1)
    assert second.acquire(2, [0, 1, 2]) == ()
    # What it could not use is free for others.
    assert third.acquire(1, [0, 1, 2]) == (2,)
    first.release()
    assert second.acquire(2, [0, 1, 2]) == (0, 1)
    assert second.acquire(1, [0, 1, 2]) == (0,), "it gives back what it had"


def test_of_several_that_choose_at_once_one_gets_all(tmp_path: Path) -> None:
    leases = [CoreLease(tmp_path / "locks") for _ in range(16)]
    with ThreadPoolExecutor(len(leases)) as pool:
        found = list(pool.map(lambda lease: lease.acquire(8, range(8)), leases, timeout=PATIENCE_S))
    assert sorted(found) == [()] * 15 + [tuple(range(8))]


def test_cores_are_those_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(allowed_cores()) == sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5000, 5003})
    assert allowed_cores() == [5000, 5003]


def test_locks_that_cannot_be_used_leave_threads_unbound(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert CoreLease(tmp_path / "file").acquire(1, [0]) == ()


def test_two_servers_of_a_job_get_different_cores(
    plan: TinyPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each prints which cores it was given; the job's affinity has one more than they need."""
    cores = allowed_cores()
    if len(cores) < 2:
        pytest.skip("the machine has one core")
    monkeypatch.setenv("AGENTC_DEVICE_LOCKS", str(tmp_path / "locks"))
    echo: dict[str, Any] = {"arguments": ["--echo", CORES_VARIABLE], "cores": 1}
    leases = [plan.lease(role, **echo) for role in ("policy", "environment")]
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    plan.job("act", inputs={"model": ["model"]}, leases=leases)
    assert plan.run("model").returncode == 0
    done = plan.run("act")
    assert done.returncode == 0, done.stderr
    logs = plan.store / "objects" / plan.object("act") / "logs"
    said = [(logs / f"{role}.log").read_text() for role in ("policy", "environment")]
    given = {text.splitlines()[0].removeprefix(f"{CORES_VARIABLE} = ") for text in said}
    assert given == {str(core) for core in cores[:2]}


def test_what_needs_more_than_there_are_is_not_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_DEVICE_LOCKS", str(tmp_path / "locks"))
    spec = {"role": "policy", "backend": "serve.mine", "cores": 1 << 20}
    server = ServerProcess(
        spec, python=[], variables={}, model=None, folder=tmp_path, logs=tmp_path
    )
    assert server._take_cores() == {}
