"""Leases of GPUs: never two holders, none idle while a job that fits waits, none outlives its
holder. Devices are pretended; locks, processes and kills are real."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, processes_of

from agentc.runtime.machine.device_lease import DeviceLease, one_at_a_time
from agentc.runtime.machine.hardware import Device, DevicesError

SCHEDULE = Path(__file__).parents[1] / "support" / "device_schedule.py"
FOUR = [Device(str(number), f"gpu{number}") for number in range(4)]


@pytest.mark.slow
def test_random_schedules_share_nothing_and_leave_nothing_idle(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCHEDULE), str(tmp_path), "0", "200"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 200
    assert {one["devices"] for one in found} == set(range(1, 9))
    sums = {name: sum(one[name] for one in found) for name in found[0]}
    # They were schedules worth the name: jobs waited, got what they wanted, were killed.
    assert sums["jobs"] > 1600, sums
    assert sums["granted"] > 1000, sums
    assert sums["killed"] > 300, sums
    assert sums["waited"] > 1000, sums
    assert all(one["most"] <= one["devices"] for one in found)
    assert sum(one["most"] == one["devices"] for one in found) > 100


def test_all_or_none(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    three, two, one = (DeviceLease(FOUR, number, "job", folder) for number in (3, 2, 1))
    assert three.try_acquire()
    assert [device.name for device in three.held] == ["0", "1", "2"]
    assert not two.try_acquire()
    assert one.try_acquire(), "the two that did not get both hold none"
    assert len(two.holders()) == 4
    assert two.holders()[0] == f"0: job (process {os.getpid()} of user {os.getuid()})"
    three.release()
    assert two.try_acquire()
    assert two.try_acquire(), "what is held is held"
    two.release()
    one.release()
    assert two.holders() == []


def test_more_than_there_are_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(DevicesError, match=r"5 GPUs are asked for, and this machine has 4 \(0, 1"):
        DeviceLease(FOUR, 5, "job", tmp_path)


def test_locks_are_for_all_users_and_nobody_takes_them_away(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        lease = DeviceLease(FOUR, 1, "job", tmp_path / "locks")
        assert lease.try_acquire()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o1777
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "locks").iterdir()} == {0o666}
    lease.release()


def test_a_lock_that_was_cleaned_away_is_none(tmp_path: Path) -> None:
    """Whoever opened the file before it was removed, and locks it after, holds nothing."""
    folder = tmp_path / "locks"
    first = DeviceLease(FOUR[:1], 1, "first", folder)
    assert first.try_acquire()
    first.release()
    (folder / "gpu-gpu0.lock").unlink()
    second, third = (DeviceLease(FOUR[:1], 1, name, folder) for name in ("second", "third"))
    assert second.try_acquire()
    assert not third.try_acquire()
    second.release()


@pytest.mark.parametrize("trap", ["link", "fifo", "folder"])
def test_what_is_no_lock_file_is_refused(tmp_path: Path, trap: str) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    place = folder / "gpu-gpu0.lock"
    if trap == "link":
        (tmp_path / "mine").write_text("precious")
        place.symlink_to(tmp_path / "mine")
    elif trap == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(DevicesError, match="AGENTC_DEVICE_LOCKS=DIR names another folder"):
        DeviceLease(FOUR, 1, "job", folder).try_acquire()
    if trap == "link":
        assert (tmp_path / "mine").read_text() == "precious"


def test_a_killed_wrapper_gives_back_only_what_nothing_uses_any_more(plan: TinyPlan) -> None:
    """The kernel frees a dead wrapper's locks at once, and its program may live a moment longer."""
    environ = {"AGENTC_GPUS": "1", "AGENTC_DEVICE_LOCKS": str(plan.store.parent / "locks")}
    plan.job("held", hold_after=0, rows=1, children=True)
    plan.job("next", echo=["CUDA_VISIBLE_DEVICES"])
    plan.write()
    first = subprocess.Popen(
        [*plan.argv("held"), "--asked", "gpu=1"], env={**os.environ, **environ},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: plan.status("held").get("state") == "running")
    second = subprocess.Popen(
        [*plan.argv("next"), "--asked", "gpu=1"], env={**os.environ, **environ},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    waits = wait_for(lambda: "0: held" in plan.status("next").get("message", "") and "for 1 GPU")
    assert waits in plan.status("next")["message"]
    mark = plan.status("held")["mark"]
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, said
    from agentc.runtime.machine import process

    assert not process.marked(mark)
    log = plan.data("next").parent / "logs" / "log.txt"
    assert "CUDA_VISIBLE_DEVICES = 0\n" in log.read_text()
    assert plan.manifest("next")["hardware"]["gpus_given"] == ["0"]
    assert not processes_of(plan.store)


def test_servers_pass_the_gate_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"AGENTC_GPUS": "2", "AGENTC_DEVICE_LOCKS": str(tmp_path / "locks")}
    script = (
        "import os\nfrom agentc.runtime.machine.device_lease import one_at_a_time\n"
        "with one_at_a_time(os.environ, 1) as gate:\n    print('through', flush=True)\n"
    )
    with one_at_a_time(environ, 1) as gate:
        other = subprocess.Popen(
            [sys.executable, "-c", script], env={**os.environ, **environ}, stdout=subprocess.PIPE
        )
        with one_at_a_time(environ, 0):
            """A server without GPUs has no need of it."""
        assert other.poll() is None
        gate.open()
        assert other.communicate(timeout=PATIENCE_S)[0] == b"through\n"
