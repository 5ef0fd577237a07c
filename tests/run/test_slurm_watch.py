"""Ends of jobs that Snakemake's plugin does not tell, and submissions that SLURM does not take:
what a run makes of them. Queue and clock are told to it here; tests/slurm has the real ones."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.plan.work import Work, find_work, read_plan
from agentc.run import drive, slurm_endings, slurm_queue, slurm_watch
from agentc.run.driver import DriverOptions
from agentc.run.observe import Observer, Seen
from agentc.run.profile import Profile
from agentc.run.servers import ServerWatch
from agentc.run.slurm_queue import QueueError
from agentc.run.slurm_watch import LOOK_S, QueueWatch, Verdict
from agentc.runtime.layout import StoreLayout

AWAY = "sbatch: error: Unable to contact slurm controller (connect failure)"
SLURM = Profile(name="ours", file=Path("config.yaml"), settings={"executor": "slurm"})


@dataclass
class Lines:
    """A view that keeps what is said."""

    said: list[str] = field(default_factory=list)

    def show(self, jobs: Sequence[Seen]) -> None:
        pass

    def say(self, text: str, *, passing: bool = False) -> None:
        self.said.append(text)


class Scene:
    """A plan with two jobs, submitted as 7 and 8, a log, a queue, and a clock."""

    def __init__(self, plan: TinyPlan, *, keep_going: bool = False) -> None:
        self.plan, self.log = plan, plan.folder / "snakemake.log"
        for name in ("first", "second"):
            plan.job(name, rows=1, say=name)
        self.work: Work = find_work(read_plan(plan.write()), StoreLayout(plan.store))
        self.queue: dict[str, str] | None = {"7": "RUNNING", "8": "RUNNING"}
        self.now = 0.0
        lines = [
            f"Job 1 has been submitted with SLURM jobid {number} (log: /x/rule_{kind}/{key}/1.log)."
            for number, (kind, key) in enumerate(
                (plan.object(name).split("/") for name in ("first", "second")), start=7
            )
        ]
        self.log.write_text("\n".join(lines) + "\n")
        self.watch = QueueWatch(
            self.work, self.log, 0, self._ask, keep_going=keep_going, clock=lambda: self.now
        )

    def _ask(self) -> dict[str, str]:
        if self.queue is None:
            raise QueueError("squeue: no answer")
        return self.queue

    def publish(self, name: str) -> None:
        assert self.plan.run(name).returncode == 0

    def finished(self) -> None:
        with self.log.open("a") as log:
            log.write("Finished jobid: 1 (Rule: rollout)\n")

    def after(self, seconds: float, **queue: str) -> tuple[Verdict, list[str]]:
        """What a look finds that much later."""
        if self.queue is not None:
            self.queue.update({number.strip("_"): state for number, state in queue.items()})
        self.now += seconds
        assert self.watch.look() == ("wait", []), "it asks first"
        while not self.watch._asked or not self.watch._asked.done():
            time.sleep(0.001)
        return self.watch.look()


def test_job_that_somebody_cancelled_ends_the_run_with_its_cause(plan: TinyPlan) -> None:
    scene = Scene(plan)
    assert scene.after(LOOK_S) == ("wait", [])
    assert scene.after(LOOK_S, _7="CANCELLED") == ("wait", []), "SLURM may bring it back"
    verdict, said = scene.after(2 * LOOK_S)
    assert verdict == "failed"
    assert said[0].startswith("SLURM ended job 7 (first): CANCELLED; somebody cancelled it")
    (ending,) = slurm_endings.read_endings(scene.log.read_text(), scene.work)
    assert (ending.number, ending.status, ending.again) == ("7", "CANCELLED", False)
    assert slurm_endings.describe(scene.log, scene.work) == said


def test_cancelled_job_that_left_the_memory_of_slurm_too(plan: TinyPlan) -> None:
    scene = Scene(plan)
    assert scene.after(LOOK_S) == ("wait", [])
    assert scene.queue is not None
    del scene.queue["7"]
    scene.after(LOOK_S)
    verdict, said = scene.after(300)
    assert verdict == "failed"
    assert "SLURM knows nothing of it any more" in said[0]


def test_with_keep_going_the_others_are_let_finish(plan: TinyPlan) -> None:
    scene = Scene(plan, keep_going=True)
    scene.after(LOOK_S, _7="CANCELLED")
    verdict, said = scene.after(2 * LOOK_S)
    assert verdict == "wait"
    assert "CANCELLED" in said[0]
    scene.publish("second")
    assert scene.after(LOOK_S, _8="COMPLETED") == ("wait", []), "Snakemake may have more to submit"
    scene.finished()
    assert scene.after(LOOK_S) == ("failed", [])


@pytest.mark.parametrize(("said", "typed"), [(True, False), (False, True), (None, False)])
def test_profile_may_say_that_it_keeps_going(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch, said: bool | None, typed: bool
) -> None:
    """As the one that ships does: Snakemake heeds it, and so must whoever ends Snakemake."""
    scene = Scene(plan)
    settings = {"executor": "slurm", **({} if said is None else {"keep-going": said})}
    profile = Profile(name="ours", file=Path("config.yaml"), settings=settings)
    options = DriverOptions(profile=profile, token="x", keep_going=typed)
    monkeypatch.setattr(drive.slurm_queue, "states", lambda _: scene.queue)
    watch = drive._queue_watch(scene.work, scene.log, 0, options)
    assert watch is not None
    watch._clock = lambda: scene.now
    watch._next, scene.watch = 0.0, watch
    scene.after(LOOK_S, _7="CANCELLED")
    assert scene.after(2 * LOOK_S)[0] == ("wait" if said or typed else "failed")


@pytest.mark.parametrize("back", ["PENDING", "COMPLETING"])
def test_job_that_slurm_starts_again_is_waited_for(plan: TinyPlan, back: str) -> None:
    scene = Scene(plan)
    scene.after(LOOK_S, _7="PREEMPTED")
    scene.after(2 * LOOK_S, _7=back)
    assert scene.after(LOOK_S, _7="PREEMPTED") == ("wait", [])
    assert scene.after(LOOK_S, _7="RUNNING") == ("wait", [])


def test_preempted_job_that_does_not_come_back_is_submitted_again(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.after(LOOK_S, _7="PREEMPTED")
    assert scene.after(40)[0] == "failed"
    (ending,) = slurm_endings.read_endings(scene.log.read_text(), scene.work)
    assert ending.again


def test_failure_is_left_to_the_plugin(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.after(LOOK_S, _7="FAILED")
    assert scene.after(180) == ("wait", [])
    with scene.log.open("a") as log:
        log.write("SLURM-job '7' failed, SLURM status is: 'FAILED'. Reason: Unknown.\n")
    assert scene.after(180) == ("wait", [])


def test_jobs_on_another_cluster_are_not_missed(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.queue = {}
    assert scene.after(LOOK_S) == ("wait", [])
    assert scene.after(1000) == ("wait", [])


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
    assert scene.after(LOOK_S, _7="COMPLETED", _8="COMPLETED") == ("wait", [])
    assert scene.after(least - 15) == ("wait", []), "it may look, or wait for their files"
    assert scene.after(20)[0] == "again"


def test_jobs_that_are_done_are_not_looked_at_again(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look is at thousands of them, over a network file system."""
    scene = Scene(plan)
    scene.after(LOOK_S)
    asked: list[Path] = []
    monkeypatch.setattr(slurm_watch, "refresh", asked.append)
    scene.publish("first")
    for _ in range(3):
        assert scene.after(LOOK_S, _7="COMPLETED") == ("wait", [])
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("squeue", "found"),
    [
        (r"printf '7|RUNNING|agentc-x-1\n8|RUNNING|\351t\351\n'", {"7": "RUNNING"}),
        (None, "it cannot be started: Permission denied"),
    ],
)
def test_no_answer_of_squeue_ends_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str | None, found: object
) -> None:
    """Names of a user's other jobs are any bytes; and a busy login node may start no process."""
    command = tmp_path / "squeue"
    command.write_text(f"#!/bin/sh\n{squeue}\n")
    command.chmod(0o755 if squeue else 0o644)
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
    assert scene.after(LOOK_S)[1] == ["squeue: no answer; jobs at work go on, and this run waits"]
    assert scene.after(LOOK_S) == ("wait", [])
    scene.queue = {"7": "RUNNING"}
    assert scene.after(LOOK_S) == ("wait", ["SLURM answers again"])


def refused(words: str) -> str:
    return f"    message: SLURM sbatch failed. The error message was '{words}'.\n    sbatch call:\n"


@pytest.mark.parametrize(
    ("log", "away"),
    [
        (refused(AWAY), True),
        (refused("sbatch: error: Socket timed out on send/recv"), True),
        ("    message: Job submission failed with exception: Failed to run sinfo for retrieval of "
         "cluster partitions: slurm_load_partitions: Unable to contact slurm controller\n", True),
        (refused("sbatch: error: invalid partition specified: nowhere"), False),
    ],
)  # fmt: skip
def test_refused_submissions(log: str, away: bool) -> None:
    (refusal,) = slurm_endings.read_refusals(log)
    assert refusal.away is away
    assert "sbatch call" not in refusal.said


def drive_refused(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch, words: str, times: int
) -> tuple[int, list[str]]:
    """Drive a plan whose first submissions are refused with these words."""
    plan.job("only", rows=1)
    count = plan.folder / "refusals"
    script = plan.folder / "stand_in.py"
    script.write_text(
        "import pathlib, subprocess, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "known = len(count.read_text()) if count.exists() else 0\n"
        f"if known < {times}:\n"
        "    count.write_text('x' * (known + 1))\n"
        f"    print({refused(words)!r})\n"
        "    sys.exit(1)\n"
        "sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
    )
    queue = plan.folder / "bin" / "squeue"
    queue.parent.mkdir()
    queue.write_text(f"#!/bin/sh\necho x >> {plan.folder}/asked\n"
                     f"[ $(wc -l < {plan.folder}/asked) -gt 1 ]\n")  # fmt: skip
    queue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{queue.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(drive, "_QUEUE_S", 0.01)
    monkeypatch.setattr(drive, "_PAUSE_S", 0.01)
    argv = [sys.executable, str(script), *plan.argv("only")]
    monkeypatch.setattr(drive, "driver_argv", lambda *_: argv)
    layout, view = StoreLayout(plan.store), Lines()
    work = find_work(read_plan(plan.write()), layout)
    observer = Observer(layout, work.missing, since=0.0)
    servers = ServerWatch(layout, work.document, since=0.0)
    options = DriverOptions(profile=SLURM)
    return drive.drive(work, plan.folder, options, observer, servers, view), view.said


def test_submission_while_the_controller_is_away_is_waited_for(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = drive_refused(plan, monkeypatch, AWAY, times=2)
    assert code == drive.EXIT_DONE, said
    assert said[0] == f"SLURM takes no jobs ({AWAY}): waiting for it; Ctrl-C ends this"
    assert said[1] == "SLURM answers: going on"
    assert plan.published("only")


def test_submission_that_slurm_will_never_take_ends_the_run(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = drive_refused(plan, monkeypatch, "sbatch: error: invalid partition", times=1)
    assert (code, said) == (drive.EXIT_FAILED, [])
