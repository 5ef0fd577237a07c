"""A store of two users: nobody's run forgets another user's record, cancels their jobs, or takes a
record that it may not open for one of a dead run."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.cli import main
from agentc.plan.work import Work, find_work, read_plan
from agentc.run import leftovers
from agentc.run.active_runs import ActiveRun, active_runs, attended
from agentc.run.leftovers import remove_stale_folders
from agentc.runtime.store.layout import StoreLayout

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@contextmanager
def as_nobody() -> Iterator[None]:
    """What runs inside opens files as another user. Python's own may not be readable then: what is
    imported late is imported before."""
    for name in ("ascii", "utf-8", "latin-1"):
        codecs.lookup(name)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def layout() -> Iterator[StoreLayout]:
    """A store in a folder that every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="agentc-two-users-"))
    folder.chmod(0o755)
    yield StoreLayout(folder / "store")
    shutil.rmtree(folder)


@needs_root
@pytest.mark.parametrize("mode", [0o644, 0o600], ids=["readable", "unreadable"])
def test_a_record_that_may_not_be_written_is_of_a_live_run(layout: StoreLayout, mode: int) -> None:
    with attended(layout, "tiny", None) as run:
        run.path.chmod(mode)
        with as_nobody():
            (seen,) = active_runs(layout)
            assert seen.is_alive()
            assert (seen.user, seen.is_mine, seen.may_be_ended) == ("root", False, False)


@needs_root
def test_a_record_that_nobody_holds_is_of_a_dead_run_for_another_user_too(
    layout: StoreLayout,
) -> None:
    run = leave_record(layout, uid=0)
    an_hour_ago = time.time() - 3600
    os.utime(run.path, (an_hour_ago, an_hour_ago))
    for mode in (0o644, 0o600):
        run.path.chmod(mode)
        with as_nobody():
            (seen,) = active_runs(layout)
            assert not seen.is_alive()


@needs_root
def test_cancel_says_whose_run_it_is(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "tiny: it is root's: only they (or an administrator) can end its jobs"
    with attended(layout, "tiny", "slurm") as run:
        for words in ([], ["tiny"]):
            with as_nobody():
                assert main(["cancel", *words, "--store", str(layout.root)]) == 3
            shown = capsys.readouterr()
            assert said in shown.err
            assert "stopped" not in shown.out
        assert not run.path.with_suffix(".stop").exists(), "it was asked to stop"
    dead = leave_record(layout, uid=0)
    with as_nobody():
        assert main(["cancel", "--store", str(layout.root)]) == 3
    assert said in capsys.readouterr().err
    assert dead.path.exists()


def leave_record(layout: StoreLayout, uid: int) -> ActiveRun:
    """Of a run of that user that was killed."""
    path = layout.root / "runs" / "tiny" / "active" / "a1b2.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"host": os.uname().nodename, "pid": 1, "began": 0.0, "queue": "slurm", "uid": uid}
    path.write_text(json.dumps(record))
    (run,) = active_runs(layout)
    return run


class Queue:
    """`squeue` and `scancel` that know of one user's jobs, as SLURM's do."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
        self._rows, self._cancelled = folder / "rows", folder / "cancelled"
        self._rows.write_text("")
        (folder / "squeue").write_text(
            f'#!/bin/sh\ncase " $* " in *" --user={uid} "*) cat {self._rows};; esac\n'
        )
        (folder / "scancel").write_text(f"#!/bin/sh\necho $* >> {self._cancelled}\n")
        for name in ("squeue", "scancel"):
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def has(self, *units: str) -> None:
        rows = []
        for number, unit in enumerate(units, start=76):
            kind, key = unit.split("/")
            rows.append(f"{number}|agentc-a1b2_x|RUNNING|None|rule_{kind}_wildcards_{key}\n")
        self._rows.write_text("".join(rows))

    def cancelled(self) -> str:
        return self._cancelled.read_text() if self._cancelled.exists() else ""


@pytest.fixture
def work(plan: TinyPlan) -> Work:
    plan.job("needed", rows=1)
    return find_work(read_plan(plan.write()), StoreLayout(plan.store))


def test_another_user_s_jobs_are_waited_for_and_their_record_stays(
    work: Work, plan: TinyPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = os.geteuid() + 4321
    run = leave_record(work.layout, uid=another)
    commands = tmp_path / "commands"
    commands.mkdir()
    queue = Queue(commands, monkeypatch, another)
    queue.has(plan.object("needed"), "rollout/" + "0" * 32)
    orphans = leftovers.adopt_orphans([run], work, takes_over=True)
    assert [each.token for each in orphans.awaited] == ["a1b2"]
    assert orphans.taken == (), "it is another user's"
    assert orphans.messages == (
        f"1 job of a run of user {another} that was killed is in the queue (76): waiting for what"
        f" they make; only user {another} (or an administrator) can end them",
    )
    queue.has()
    leftovers.wait_for(orphans.awaited, lambda: None)
    assert run.path.exists()
    # Nor is it forgotten where none of its jobs is shown, which proves nothing.
    none = leftovers.Orphans(taken=(), awaited=(), messages=())
    assert leftovers.adopt_orphans([run], work, takes_over=True) == none
    assert run.path.exists()
    assert queue.cancelled() == ""


def test_an_administrator_ends_the_jobs_of_another_user(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = 4321
    run = leave_record(work.layout, uid=another)
    commands = tmp_path / "commands"
    commands.mkdir()
    queue = Queue(commands, monkeypatch, another)
    queue.has("rollout/" + "0" * 32)
    (commands / "scancel").write_text(
        f"#!/bin/sh\necho $* >> {commands}/cancelled\n: > {commands}/rows\n"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 77)
    assert leftovers.clear_queue([run]) == ""
    assert queue.cancelled() == "", "it is another user's"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert leftovers.clear_queue([run]) == ""
    assert queue.cancelled() == "--quiet 76\n"


@needs_root
def test_an_object_that_may_not_be_read_is_not_removed(layout: StoreLayout) -> None:
    """The other place where an unreadable file was taken for one that says no."""
    manifest = layout.manifest("session/" + "1" * 32)
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"members": {}}))
    manifest.chmod(0o600)
    layout.root.chmod(0o777)
    for folder in (layout.root, *layout.root.rglob("*")):
        if folder.is_dir():
            folder.chmod(0o777)
    with as_nobody():
        remove_stale_folders(layout, [], ["session/" + "1" * 32])
    assert manifest.exists()
