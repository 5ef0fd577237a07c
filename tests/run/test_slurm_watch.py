"""Ends of jobs that Snakemake's plugin does not tell: what a run makes of them. Queue and clock are
told to it here; tests/slurm has the real ones. Neighbour: `test_slurm_submissions.py`."""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from slurm_scene import SLURM, Lines, Scene
from tiny_plan import TinyPlan

from agentc.exit_codes import EXIT_FAILED
from agentc.placement.profile import Profile
from agentc.run import drive, slurm_endings, slurm_queue, slurm_watch
from agentc.run.observe import Observer, ServerWatch
from agentc.run.slurm_queue import QueueError, QueueState
from agentc.run.slurm_watch import POLL_S
from agentc.run.snakemake_process import DriverOptions
from agentc.runtime.machine import process
from agentc.runtime.store.layout import StoreLayout


def test_job_that_somebody_cancelled_ends_the_run_with_its_cause(plan: TinyPlan) -> None:
    scene = Scene(plan)
    assert scene.after(POLL_S) == ("wait", [])
    assert scene.after(POLL_S, _7="CANCELLED") == ("wait", []), "SLURM may bring it back"
    verdict, said = scene.after(2 * POLL_S)
    assert verdict == "failed"
    assert said[0].startswith("SLURM ended job 7 (first): CANCELLED; somebody cancelled it")
    (ending,) = slurm_endings.read_endings(scene.log.read_text(), scene.work)
    assert (ending.number, ending.status, ending.again) == ("7", "CANCELLED", False)
    assert slurm_endings.describe(scene.log, scene.work) == said


def test_cancelled_job_that_left_the_memory_of_slurm_too(plan: TinyPlan) -> None:
    scene = Scene(plan)
    assert scene.after(POLL_S) == ("wait", [])
    assert scene.queue is not None
    del scene.queue["7"]
    scene.after(POLL_S)
    verdict, said = scene.after(300)
    assert verdict == "failed"
    assert "SLURM knows nothing of it any more" in said[0]


def test_with_keep_going_the_others_are_let_finish(plan: TinyPlan) -> None:
    scene = Scene(plan, keep_going=True)
    scene.after(POLL_S, _7="CANCELLED")
    verdict, said = scene.after(2 * POLL_S)
    assert verdict == "wait"
    assert "CANCELLED" in said[0]
    scene.publish("second")
    assert scene.after(POLL_S, _8="COMPLETED") == ("wait", []), "Snakemake may have more to submit"
    scene.finished()
    assert scene.after(POLL_S) == ("failed", [])


def test_with_keep_going_a_run_ends_while_accounting_is_away(plan: TinyPlan) -> None:
    """Snakemake never hears of the others then, and of the lost one neither."""
    scene = Scene(plan, keep_going=True)
    scene.after(POLL_S, _7="CANCELLED")
    scene.publish("second")
    assert scene.after(2 * POLL_S, _8="COMPLETED")[0] == "wait"
    assert scene.after(slurm_watch.DONE_S - 20)[0] == "wait", "it may look yet"
    verdict, said = scene.after(30)
    assert verdict == "failed"
    assert said == ["its other jobs are done and Snakemake was not notified; run again to continue"]


@pytest.mark.parametrize(("said", "typed"), [(True, False), (False, True), (None, False)])
def test_profile_may_say_that_it_keeps_going(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch, said: bool | None, typed: bool
) -> None:
    """As the one that ships does: Snakemake heeds it, and so must whoever ends Snakemake."""
    scene = Scene(plan)
    settings = {"executor": "slurm", **({} if said is None else {"keep-going": said})}
    profile = Profile(name="ours", file=Path("config.yaml"), settings=settings)
    options = DriverOptions(profile=profile, token="x", keep_going=typed)
    monkeypatch.setattr(drive.slurm_queue, "states", lambda _, numbers: scene._ask(numbers))
    watch = drive._queue_watch(scene.work, scene.log, 0, options)
    assert watch is not None
    watch._clock = lambda: scene.now
    watch._next, scene.watch = 0.0, watch
    scene.after(POLL_S, _7="CANCELLED")
    assert scene.after(2 * POLL_S)[0] == ("wait" if said or typed else "failed")


@pytest.mark.parametrize("back", ["PENDING", "COMPLETING"])
def test_job_that_slurm_starts_again_is_waited_for(plan: TinyPlan, back: str) -> None:
    scene = Scene(plan)
    scene.after(POLL_S, _7="PREEMPTED")
    scene.after(2 * POLL_S, _7=back)
    assert scene.after(POLL_S, _7="PREEMPTED") == ("wait", [])
    assert scene.after(POLL_S, _7="RUNNING") == ("wait", [])


def test_preempted_job_that_does_not_come_back_is_submitted_again(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.after(POLL_S, _7="PREEMPTED")
    assert scene.after(40)[0] == "failed"
    (ending,) = slurm_endings.read_endings(scene.log.read_text(), scene.work)
    assert ending.again


def test_failure_is_left_to_the_plugin(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.after(POLL_S, _7="FAILED")
    assert scene.after(180) == ("wait", [])
    with scene.log.open("a") as log:
        log.write("SLURM-job '7' failed, SLURM status is: 'FAILED'. Reason: Unknown.\n")
    assert scene.after(180) == ("wait", [])


def test_job_that_is_held_back_is_named_once(plan: TinyPlan) -> None:
    scene = Scene(plan)
    verdict, said = scene.after(POLL_S, _7="PENDING launch failed requeued held")
    assert verdict == "wait"
    assert said == [
        "SLURM holds job 7 (first) back: launch failed requeued held; `scontrol release 7` lets it"
        " continue, `scancel 7` ends it"
    ]
    assert scene.after(1000) == ("wait", [])


def test_states_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "7|PENDING|JobHeldUser|agentc-ab_1\n8|PENDING|Priority|agentc-ab_2\n"
    lines += "9|RUNNING|None|agentc-ab_3|x\n10|RUNNING|None|agentc-cd_4\n"
    monkeypatch.setattr(slurm_queue, "_ask", lambda *words, once=False: lines)
    assert slurm_queue.states("ab") == {
        "7": QueueState("PENDING", "JobHeldUser"),
        "8": QueueState("PENDING", "Priority"),
        "9": QueueState("RUNNING"),
    }
    assert [state.held for state in slurm_queue.states("ab").values()] == [True, False, False]


def test_jobs_on_another_cluster_are_not_missed(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.queue = {}
    assert scene.after(POLL_S) == ("wait", [])
    assert scene.after(1000) == ("wait", [])


@pytest.mark.parametrize("where", ["slurm_cluster=east", "slurm_extra=--clusters=east"])
def test_nor_are_those_that_the_profile_sends_there(plan: TinyPlan, where: str) -> None:
    scene = Scene(plan)
    scene.asked(f"mem_mb=1000, {where}, slurm_partition=short")
    scene.queue = {}
    assert scene.after(POLL_S) == ("wait", [])
    assert scene.after(1000) == ("wait", [])


def test_job_that_a_killed_controller_has_forgotten_is_submitted_again(plan: TinyPlan) -> None:
    """It was killed before it had saved that it took the job, and gives the number to another."""
    scene = Scene(plan)
    scene.asked("mem_mb=1000, slurm_partition=short")
    scene.queue = None
    scene.after(POLL_S)
    scene.queue = {"8": "RUNNING"}
    assert scene.after(POLL_S) == ("wait", ["SLURM answers again"])
    assert scene.after(POLL_S) == ("wait", [])
    verdict, said = scene.after(2 * POLL_S)
    assert verdict == "failed"
    assert said[0].startswith("SLURM took job 7 (first) and knows nothing of it; its controller")
    (ending,) = slurm_endings.read_endings(scene.log.read_text(), scene.work)
    assert (ending.number, ending.again, ending.limited) == ("7", True, False)


@pytest.mark.parametrize(("started", "seconds"), [(False, 30), (True, 240)])
def test_job_that_no_look_has_shown_is_missed_soon_unless_it_started(
    plan: TinyPlan, started: bool, seconds: float
) -> None:
    """The controller restarts between two looks. Of a job that has a log accounting may know the
    end, which Snakemake sees within three minutes."""
    scene = Scene(plan)
    scene.asked("mem_mb=1000, slurm_partition=short")
    log = slurm_endings.logs(scene.log.read_text())["7"]
    moved = plan.folder / "logs" / log.relative_to("/x")
    moved.parent.mkdir(parents=True)
    if started:
        moved.write_text("srun: ...\n")
    scene.log.write_text(scene.log.read_text().replace(str(log), str(moved)))
    scene.queue = {"8": "RUNNING"}
    assert scene.after(POLL_S) == ("wait", [])
    assert scene.after(seconds - 1) == ("wait", [])
    verdict, said = scene.after(2)
    assert verdict == "failed"
    assert said[0].startswith("SLURM took job 7 (first) and knows nothing of it")


@pytest.mark.parametrize(("scope", "least"), [(None, 75), ("shared", 240)])
def test_done_jobs_that_accounting_does_not_tell_of(
    plan: TinyPlan, scope: str | None, least: float
) -> None:
    """A shared server would have to be started again: that waits for Snakemake's next look."""
    scene = Scene(plan)
    if scope is not None:
        scene.work.document["servers"] = [{"id": "server/policy", "scope": scope}]
    scene.publish("first")
    scene.publish("second")
    assert scene.after(POLL_S, _7="COMPLETED", _8="COMPLETED") == ("wait", [])
    assert scene.after(least - 15) == ("wait", []), "it may look, or wait for their files"
    assert scene.after(20)[0] == "again"


def test_end_reaches_snakemake_although_another_job_runs_for_days(plan: TinyPlan) -> None:
    """Whatever accounting says: what is in the store, and has left the queue, is complete."""
    scene = Scene(plan)
    scene.publish("first")
    assert scene.after(POLL_S, _7="COMPLETING") == ("wait", [])
    assert scene.ends.read() == {}
    assert scene.after(POLL_S, _7="COMPLETED") == ("wait", [])
    assert scene.ends.read() == {"7": "COMPLETED"}
    assert scene.after(POLL_S, _8="COMPLETED") == ("wait", [])
    assert scene.ends.read() == {"7": "COMPLETED"}, "its result may show a little later here"


def test_a_full_disk_keeps_no_end_from_people(plan: TinyPlan) -> None:
    """Snakemake looks for itself then."""
    scene = Scene(plan)
    scene.ends.path.with_name(f"{scene.ends.path.name}.{os.getpid()}.tmp").mkdir()
    assert scene.after(POLL_S, _7="TIMEOUT") == ("wait", [])
    assert scene.ends.read() == {}


@pytest.mark.parametrize(
    ("state", "seconds"), [("TIMEOUT", 0), ("FAILED", 0), ("OUT_OF_MEMORY", 0), ("NODE_FAIL", 40)]
)
def test_failure_reaches_snakemake_before_its_own_look(
    plan: TinyPlan, state: str, seconds: float
) -> None:
    """A job of a node that failed may be queued again."""
    scene = Scene(plan)
    assert scene.after(POLL_S, _7=state) == ("wait", [])
    assert scene.ends.read() == ({} if seconds else {"7": state})
    assert scene.after(seconds) == ("wait", [])
    assert scene.ends.read() == {"7": state}


def test_a_quiet_queue_is_looked_at_seldom(plan: TinyPlan) -> None:
    """`squeue` costs the controller its whole table of jobs: 8,640 looks a day would be 720."""
    scene = Scene(plan)
    looks: list[float] = []
    while scene.now < 24 * 3600:
        scene.now = max(scene.now, scene.watch._next)
        scene.after(0)
        looks.append(scene.now)
    assert len(looks) < 800
    assert [b - a for a, b in pairwise(looks[:6])] == [POLL_S] * 5
    assert looks[-1] - looks[-2] > 60
    assert scene.asked_for[-1] == ["7", "8"]


def test_what_the_store_shows_makes_the_next_look_a_near_one(plan: TinyPlan) -> None:
    """The store costs SLURM nothing."""
    scene = Scene(plan)
    observer = Observer(StoreLayout(plan.store), scene.work.missing, since=0.0)
    scene.watch.notice(observer.observe())
    scene.after(0)
    scene.now = 7200.0
    scene.after(0)
    assert scene.watch._next > scene.now + 60
    scene.publish("first")
    scene.watch.notice(observer.observe())
    assert scene.watch._next < scene.now + POLL_S
    scene.after(0, _7="COMPLETING")
    assert scene.watch._next < scene.now + POLL_S, "it has not left the queue"
    scene.after(0, _7="COMPLETED")
    assert scene.watch._next == scene.now + POLL_S


def test_jobs_that_snakemake_heard_of_are_asked_for_no_more(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.publish("first")
    scene.after(POLL_S, _7="COMPLETED")
    scene.after(slurm_watch.UNREPORTED_S)
    scene.after(POLL_S)
    assert scene.asked_for[-1] == ["8"]


def test_squeue_is_asked_for_the_numbers_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for all of a user's jobs where they are many. Of one number that SLURM has forgotten it
    says that it is invalid."""
    command = tmp_path / "squeue"
    command.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncase "$*" in *=9*) '
        'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1;; esac\n'
        "printf '7|RUNNING|None|agentc-x_1\\n8|PENDING|Resources|agentc-server-base\\n"
        "6|RUNNING|None|other\\n'\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    asked = tmp_path / "asked"
    states = slurm_queue.states("x", ["7_1", "7_2", "8"])
    assert states == {"7": QueueState("RUNNING"), "8": QueueState("PENDING", "Resources")}
    assert "--jobs=7,8" in asked.read_text().split()
    assert list(slurm_queue.states("x", list(map(str, range(10, 500))))) == ["7"]
    assert "--me" in asked.read_text().split()
    assert slurm_queue.states("x", ["9"]) == {}


def test_jobs_that_are_done_are_not_looked_at_again(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look is at thousands of them, over a network file system."""
    scene = Scene(plan)
    scene.after(POLL_S)
    asked: list[Path] = []
    monkeypatch.setattr(slurm_watch, "refresh", asked.append)
    scene.publish("first")
    for _ in range(3):
        assert scene.after(POLL_S, _7="COMPLETED") == ("wait", [])
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("squeue", "found"),
    [
        (
            r"printf '7|RUNNING|None|agentc-x-1\n8|RUNNING|None|\351t\351\n'",
            {"7": QueueState("RUNNING")},
        ),
        (None, "it cannot be started: Permission denied"),
        ("exec sleep 600", "no answer in 0 s"),
    ],
)
def test_no_answer_of_squeue_ends_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str | None, found: object
) -> None:
    """Names of a user's other jobs are any bytes; and a busy login node may start no process."""
    command = tmp_path / "squeue"
    command.write_text(f"#!/bin/sh\n{squeue}\n")
    command.chmod(0o755 if squeue else 0o644)
    if squeue == "exec sleep 600":
        monkeypatch.setattr(slurm_queue, "_TIMEOUT_S", 0.2)
    monkeypatch.setenv(
        "PATH", str(tmp_path) if squeue is None else f"{tmp_path}:{os.environ['PATH']}"
    )
    if isinstance(found, dict):
        assert slurm_queue.states("x") == found
    else:
        with pytest.raises(QueueError, match=str(found)):
            slurm_queue.states("x")


def test_controller_that_does_not_answer_is_said_once(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.queue = None
    assert scene.after(POLL_S)[1] == [
        "squeue: no answer; running jobs continue, and this run waits"
    ]
    assert scene.after(POLL_S) == ("wait", [])
    scene.queue = {"7": "RUNNING"}
    assert scene.after(POLL_S) == ("wait", ["SLURM answers again"])


def test_jobs_that_may_finish_keep_their_servers(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's lease on a shared server lasts as long as the process of its Snakemake."""
    scene = Scene(plan)
    script = plan.folder / "stand_in.py"
    script.write_text(
        f"import sys, time\nprint({scene.log.read_text()!r}, flush=True)\n"
        "for _ in range(36000):\n    time.sleep(0.01)\n    print('running', flush=True)\n"
    )
    monkeypatch.setattr(drive, "driver_argv", lambda *_: [sys.executable, str(script)])
    monkeypatch.setattr(drive, "_QUEUE_S", 0.3)
    monkeypatch.setattr(slurm_watch, "POLL_S", 0.01)
    monkeypatch.setattr(slurm_watch, "UNREPORTED_STATES", {"CANCELLED": 0.0})
    found: list[drive.Driver] = []

    class Known(drive.Driver):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            found.append(self)

    alive: list[bool] = []
    sizes: list[int] = []

    def queued(_: object) -> tuple[slurm_queue.QueuedJob, ...]:
        alive.append(process.started(found[0].pid) is not None and found[0].status() is None)
        sizes.append(scene.log.stat().st_size)
        return () if len(alive) > 2 else (slurm_queue.QueuedJob("8", "RUNNING", "", None),)

    monkeypatch.setattr(drive, "Driver", Known)
    states = {"7": QueueState("CANCELLED"), "8": QueueState("RUNNING")}
    monkeypatch.setattr(slurm_queue, "states", lambda _, numbers: states)
    monkeypatch.setattr(slurm_queue, "queued_jobs", queued)
    layout, view = StoreLayout(plan.store), Lines()
    observer = Observer(layout, scene.work.missing, since=0.0)
    servers = ServerWatch(layout, scene.work.document, since=0.0)
    options = DriverOptions(profile=SLURM, token="x")
    code = drive.drive(scene.work, plan.folder, options, observer, servers, view, scene.log)
    assert code == EXIT_FAILED
    assert "waiting for 1 other job in the queue" in view.said
    assert alive == [True] * 3
    assert sizes[1:] == sizes[1:2] * 2, "it submits no more"
    assert found[0].status() == -signal.SIGKILL
