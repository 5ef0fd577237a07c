"""A small file system that fills up: nothing published is lost or torn, the message says what was
being written where, how much is free and what helps, and the next run completes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.run.observe import Observer
from agentc.run.outcome import describe_failures
from agentc.runtime.store.file_system import explain
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object
from agentc.store.paths import StoreUnusableError, open_store

SIZE = 2 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A mounted tmpfs of 2 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "agentc-test", str(folder)]
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root, to mount a small file system")
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def plan(small: Path, tmp_path: Path) -> TinyPlan:
    """One job is published; the plan itself lies on another disk."""
    tiny = TinyPlan(tmp_path)
    tiny.store = small / "store"
    tiny.job("first", rows=1)
    assert tiny.run("first").returncode == 0
    return tiny


def fill(folder: Path, leave: int) -> Path:
    """Fill the file system but for so many bytes."""
    ballast = folder / "ballast"
    state = os.statvfs(folder)
    with ballast.open("wb") as out:
        out.write(b"x" * max(0, state.f_bavail * state.f_frsize - leave))
    return ballast


def assert_whole(plan: TinyPlan, *jobs: str) -> None:
    found, problems = list_objects(StoreLayout(plan.store))
    assert problems == []
    assert {stored.name for stored in found} == {plan.object(job) for job in jobs}
    assert [fault for stored in found for fault in verify_object(stored)] == []


BETWEEN = [pytest.param(room, marks=pytest.mark.slow) for room in (4096, 16384, 24576, 32768)]


@pytest.mark.parametrize("leave", [0, *BETWEEN, 65536])
def test_full_disk_at_any_point_of_a_job(plan: TinyPlan, small: Path, leave: int) -> None:
    plan.job("second", rows=100)
    ballast = fill(small, leave)
    done = plan.run("second")
    assert done.returncode == 1, done.stderr
    assert "Traceback (most" not in done.stderr.split("last lines of")[0]
    assert "no space is left on its file system (ENOSPC" in done.stderr
    assert str(plan.store) in done.stderr
    assert "of 2 MB free" in done.stderr
    assert "agentc store gc" in done.stderr
    assert_whole(plan, "first")
    ballast.unlink()
    done = plan.run("second")
    assert done.returncode == 0, done.stderr
    assert_whole(plan, "first", "second")


def test_full_disk_stops_agentc_run_with_the_same_words(plan: TinyPlan, small: Path) -> None:
    from agentc.run.past import keep_plan
    from agentc.runtime.store.file_system import StoreWriteError, writing
    from agentc.store.paths import RunFolder

    fill(small, 0)
    folder = RunFolder.of(StoreLayout(plan.store), "tiny")
    with (
        pytest.raises(StoreWriteError, match=r"cannot write the record of the run to .*ENOSPC"),
        writing("the record of the run", folder.path),
    ):
        keep_plan(folder, "x" * 9000)


def test_read_only_store_is_named(plan: TinyPlan, small: Path) -> None:
    plan.job("second", rows=1)
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    done = plan.run("second")
    assert done.returncode == 1
    assert "is mounted read-only (EROFS; tmpfs at" in done.stderr
    assert str(plan.store / "locks") in done.stderr
    assert_whole(plan, "first")


def test_quota_and_permission_in_words(tmp_path: Path) -> None:
    """No quota can be set up here; the message is made of the system's own error number."""
    quota = explain(OSError(errno.EDQUOT, "quota"), "the object sft/1", tmp_path)
    assert quota.startswith(f"cannot write the object sft/1 to {tmp_path}: the disk quota of ")
    assert "is used up (EDQUOT; " in quota
    assert "`quota -s`" in quota
    refused = explain(PermissionError(errno.EACCES, "no"), "its claims", tmp_path / "locks")
    assert f"may not (EACCES; {tmp_path} is drwx" in refused
    assert "chmod -R g+rwX" in refused


def test_a_disk_that_was_full_is_named_when_there_is_room_again(
    plan: TinyPlan, small: Path, tmp_path: Path
) -> None:
    """What a job had staged is removed, or somebody frees some: its wrapper has said the cause."""
    layout = StoreLayout(plan.store)
    plan.job("second", rows=100)
    ballast = fill(small, 0)
    log = tmp_path / "snakemake.log"
    log.write_text(plan.run("second").stderr)
    ballast.unlink()
    plan.staging("second").mkdir(parents=True, exist_ok=True)
    state = {"state": "running", "pid": 2**22 + 1, "host": os.uname().nodename, "time": 0}
    (plan.staging("second") / "status.json").write_text(json.dumps(state))
    observer = Observer(layout, [plan.jobs[-1]], since=0.0)
    observer.driver_log = log
    told = describe_failures(layout, [plan.jobs[-1]], observer.observe(), log)
    assert told.startswith("second failed: cannot write ")
    assert "ENOSPC" in told.splitlines()[0]
    assert "was killed" not in told


def test_wrapper_that_died_of_a_full_disk_gives_one_message(plan: TinyPlan, small: Path) -> None:
    layout = StoreLayout(plan.store)
    for name in ("second", "third"):
        plan.job(name, rows=100)
        staging = plan.staging(name)
        staging.mkdir(parents=True)
        state = {"state": "running", "pid": 2**22 + 1, "host": os.uname().nodename, "time": 0}
        (staging / "status.json").write_text(json.dumps(state))
    fill(small, 0)
    seen = Observer(layout, plan.jobs, since=0.0).observe()
    told = describe_failures(layout, plan.jobs, seen, small / "none.log")
    assert told.startswith("second failed: cannot write what the program made to ")
    assert told.count("ENOSPC") == 1
    assert "killed" not in told
    assert "third failed for the same reason as second" in told


@pytest.mark.parametrize("folder", ["/proc/agentc-none/store", "/sys/agentc-none"])
def test_store_that_no_folder_can_be_made_for(folder: str) -> None:
    with pytest.raises(StoreUnusableError, match=rf"^cannot create {folder}: .*takes no new"):
        open_store(folder)
