"""Claims: one holder at a time, with flock and without it, and a takeover only from the dead."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for

from agentc.run.active_runs import ActiveRun
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.machine.process import Watchdog
from agentc.runtime.store import file_system, object_lock
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.object_lock import Heartbeat, LostClaimError, ObjectLock
from agentc.runtime.store.staging import Staging, publish

NAME = "sft/" + "a" * 32
HOLD = (
    "import sys, time\n"
    "from agentc.runtime.store.object_lock import ObjectLock\n"
    "from agentc.runtime.store.layout import StoreLayout\n"
    "claim = ObjectLock(StoreLayout(sys.argv[1]), sys.argv[2])\n"
    "assert claim.attempt() is None\n"
    "print('held', flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture(params=["flock", "owner file alone"])
def layout(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoreLayout:
    if request.param != "flock":
        monkeypatch.setenv("AGENTC_FLOCK", "off")
    return StoreLayout(tmp_path)


def owner_file(layout: StoreLayout) -> Path:
    return layout.lock(NAME).with_suffix(".owner")


@pytest.fixture
def held(layout: StoreLayout) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the claim."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(layout.root), NAME], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_one_holder_at_a_time(layout: StoreLayout) -> None:
    first, second = ObjectLock(layout, NAME), ObjectLock(layout, NAME)
    assert first.attempt() is None
    taken = second.attempt()
    assert taken is not None
    assert taken["pid"] == os.getpid()
    first.release()
    assert not owner_file(layout).exists()
    assert second.attempt() is None
    second.release()
    assert sorted(path.name for path in (layout.root / "locks").iterdir()) == [
        layout.lock(NAME).name
    ]


def test_the_living_are_never_robbed(layout: StoreLayout, held: subprocess.Popen[str]) -> None:
    ours = ObjectLock(layout, NAME)
    for _ in range(3):
        found = ours.attempt()
        assert found is not None
        assert found["pid"] == held.pid
        # It does not beat (there is no watchdog): its process says that it lives.
        time.sleep(0.05)
    assert str(held.pid) in object_lock.describe_holder(found)
    ours.release()


def test_claim_of_a_killed_process_is_taken_over(
    layout: StoreLayout, held: subprocess.Popen[str]
) -> None:
    # It declared the usual 60 s; a process that is known to be gone is waited for half as long,
    # and not at all where its flock is gone with it.
    record = json.loads(owner_file(layout).read_text())
    record["stale_s"] = 1.0
    owner_file(layout).write_text(json.dumps(record))
    held.kill()
    held.wait()
    ours = ObjectLock(layout, NAME)
    began = time.monotonic()
    while ours.attempt() is not None:
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.02)
    waited = time.monotonic() - began
    if os.environ.get("AGENTC_FLOCK") == "off":
        assert waited >= 0.5
    assert ours.is_mine()
    ours.release()


def foreign(layout: StoreLayout, **fields: object) -> None:
    """An owner file of a process on another machine."""
    record = {**object_lock.describe_self(NAME, ()), "host": "node7", "boot": "another", **fields}
    owner_file(layout).parent.mkdir(parents=True, exist_ok=True)
    owner_file(layout).write_text(json.dumps(record))


def test_holder_on_another_machine_is_gone_when_it_is_silent(layout: StoreLayout) -> None:
    foreign(layout, stale_s=0.6)
    ours = ObjectLock(layout, NAME)
    began = time.monotonic()
    for _ in range(4):  # it beats
        assert ours.attempt() is not None
        time.sleep(0.3)
        os.utime(owner_file(layout))
    assert time.monotonic() - began > 0.6
    silent = time.monotonic()
    while ours.attempt() is not None:
        time.sleep(0.02)
    assert time.monotonic() - silent > 0.5
    ours.release()


def test_holder_that_was_silent_for_ten_minutes_is_gone_at_first_sight(
    layout: StoreLayout,
) -> None:
    foreign(layout)
    before = time.time() - 700
    os.utime(owner_file(layout), (before, before))
    ours = ObjectLock(layout, NAME)
    assert ours.attempt() is None
    ours.release()


def test_clock_of_another_node_does_not_matter(layout: StoreLayout) -> None:
    """An owner file whose time lies in the past by some minutes, or in the future, and moves."""
    foreign(layout, stale_s=60.0)
    ours = ObjectLock(layout, NAME)
    for shift in (-500, 500, -400, 400):
        os.utime(owner_file(layout), (time.time() + shift, time.time() + shift))
        assert ours.attempt() is not None
    ours.release()


def test_earlier_start_of_the_same_slurm_job_is_gone(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign(layout, slurm={"SLURM_JOB_ID": "7"}, stale_s=60.0)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    seconds = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: seconds)
    ours = ObjectLock(layout, NAME)
    assert ours.attempt() is not None
    seconds += 31
    assert ours.attempt() is not None, "by silence alone it is not gone yet"
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert ours.attempt() is None
    ours.release()


def test_torn_owner_file_is_held_until_it_is_old(layout: StoreLayout) -> None:
    owner_file(layout).parent.mkdir(parents=True)
    owner_file(layout).write_text('{"host": "no')
    ours = ObjectLock(layout, NAME)
    assert ours.attempt() == {}
    before = time.time() - 700
    os.utime(owner_file(layout), (before, before))
    assert ours.attempt() is None
    ours.release()


def test_many_takers_of_a_dead_claim_are_one(layout: StoreLayout) -> None:
    """Twelve processes find the owner dead in the same moment; each holds the claim alone."""
    script = (
        "import os, sys, time\n"
        "from agentc.runtime.store.object_lock import ObjectLock\n"
        "from agentc.runtime.store.layout import StoreLayout\n"
        "claim = ObjectLock(StoreLayout(sys.argv[1]), sys.argv[2])\n"
        "while claim.attempt() is not None:\n"
        "    time.sleep(0.001)\n"
        "alone = os.path.join(sys.argv[1], 'alone')\n"
        "os.close(os.open(alone, os.O_CREAT | os.O_EXCL))\n"
        "time.sleep(0.01)\n"
        "os.unlink(alone)\n"
        "claim.release()\n"
    )
    foreign(layout)
    before = time.time() - 700
    os.utime(owner_file(layout), (before, before))
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(layout.root), NAME], stderr=subprocess.PIPE
        )
        for _ in range(12)
    ]
    said = [taker.communicate()[1].decode() for taker in takers]
    assert [taker.returncode for taker in takers] == [0] * 12, said


def test_mount_without_hard_links(layout: StoreLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    first, second = ObjectLock(layout, NAME), ObjectLock(layout, NAME)
    assert first.attempt() is None
    assert second.attempt() is not None
    assert first.beat()
    first.release()
    assert second.attempt() is None
    second.release()


def test_link_whose_reply_was_lost_counts(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link_twice(*words: str) -> None:
        real(*words)
        real(*words)  # as a client does that had no answer; raises FileExistsError

    monkeypatch.setattr(os, "link", link_twice)
    claim = ObjectLock(layout, NAME)
    assert claim.attempt() is None
    assert claim.is_mine()
    claim.release()


def test_what_was_taken_over_is_not_published(layout: StoreLayout) -> None:
    """A wrapper that was suspended for long wakes up and wants to publish."""
    claim = ObjectLock(layout, NAME)
    assert claim.attempt() is None
    other = json.loads(owner_file(layout).read_text())
    owner_file(layout).write_text(json.dumps({**other, "nonce": "of another"}))
    staging = Staging(layout, NAME)
    staging.data.mkdir(parents=True)
    (staging.data / "made.txt").write_text("by the one that was too late")
    with pytest.raises(LostClaimError):
        publish(layout, staging, {"kind": "sft", "key": "a" * 32}, Redactor(), claim)
    assert not layout.is_published(NAME)
    assert owner_file(layout).exists(), "the other one's claim stays"


def test_no_beat_is_written_for_a_lost_claim(layout: StoreLayout) -> None:
    """It would keep the claim of another alive whose holder is gone, and this process at work."""
    claim = ObjectLock(layout, NAME)
    assert claim.attempt() is None
    heartbeat = Heartbeat([claim])
    assert heartbeat.beat()
    foreign(layout)
    os.utime(owner_file(layout), (1000.0, 1000.0))
    assert not heartbeat.beat()
    assert owner_file(layout).stat().st_mtime == 1000.0
    claim.release()


def test_a_wrapper_stops_at_once_where_its_owner_file_is_gone(layout: StoreLayout) -> None:
    claim = ObjectLock(layout, NAME)
    assert claim.attempt() is None
    heartbeat = Heartbeat([claim])
    owner_file(layout).unlink()
    assert not heartbeat.beat()
    claim.release()


def test_a_wrapper_waits_for_a_store_that_is_away_as_long_as_nobody_may_take_over(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1000.0
    monkeypatch.setattr(object_lock, "_clock", lambda: seconds)
    claim = ObjectLock(layout, NAME)
    assert claim.attempt() is None
    heartbeat = Heartbeat([claim])
    locks = layout.root / "locks"
    locks.rename(layout.root / "away")
    locks.touch()  # now each look at the owner file fails, and not because it is gone
    seconds += 29
    assert heartbeat.beat()
    seconds += 2
    assert not heartbeat.beat()
    locks.unlink()
    (layout.root / "away").rename(locks)
    assert heartbeat.beat()
    claim.release()


def test_a_process_that_died_while_it_broke_a_claim_blocks_nobody(layout: StoreLayout) -> None:
    foreign(layout)
    breaker = owner_file(layout).with_suffix(".break")
    breaker.touch()
    before = time.time() - 700
    os.utime(owner_file(layout), (before, before))
    ours = ObjectLock(layout, NAME)
    assert ours.attempt() is not None, "another process breaks it this moment"
    assert breaker.exists()
    os.utime(breaker, (before, before))
    assert ours.attempt() is not None
    assert not breaker.exists()
    assert ours.attempt() is None
    ours.release()


def test_a_user_without_a_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in containers, whose users the host chooses."""
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert object_lock.describe_self(NAME, ())["user"] == "4000000"
    told = file_system.explain(PermissionError(errno.EACCES, ""), "results", tmp_path)
    assert "user 4000000 may not" in told
    if os.geteuid() == 0:
        os.chown(tmp_path, 4_000_000, 4_000_001)
        denied = PermissionError(errno.EACCES, "")
        assert " 4000000:4000001;" in file_system.explain(denied, "results", tmp_path)
    run = ActiveRun(
        name="x", token="x", host="h", pid=1, began=0.0, queue=None, path=tmp_path, uid=4_000_000
    )
    assert run.user == "user 4000000"


def test_watchdog_beats_and_tells_of_a_lost_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_LOCK_STALE_S", "1.2")
    layout = StoreLayout(tmp_path)
    script = (
        "import signal, sys, time\n"
        "from agentc.runtime.store.object_lock import ObjectLock\n"
        "from agentc.runtime.store.object_lock import Heartbeat\n"
        "from agentc.runtime.store.layout import StoreLayout\n"
        "from agentc.runtime.machine.process import Watchdog\n"
        "claim = ObjectLock(StoreLayout(sys.argv[1]), sys.argv[2])\n"
        "assert claim.attempt() is None\n"
        "watchdog = Watchdog('test-mark', Heartbeat([claim]))\n"
        "print('held', flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), NAME], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    before = owner_file(layout).stat().st_mtime_ns
    wait_for(lambda: owner_file(layout).stat().st_mtime_ns > before)
    foreign(layout)
    assert process.wait(timeout=PATIENCE_S) == -15
    assert json.loads(owner_file(layout).read_text())["host"] == "node7", "it is not ours to remove"
    process.communicate()


def test_watchdog_of_a_killed_process_lets_go(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    claim = ObjectLock(layout, NAME)
    pid = os.fork()
    if pid == 0:
        assert claim.attempt() is None
        Watchdog("test-mark", Heartbeat([claim]))
        os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    wait_for(lambda: not owner_file(layout).exists())
