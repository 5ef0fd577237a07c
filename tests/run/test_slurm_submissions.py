"""Submissions that SLURM does not take, and jobs that it takes as an array. Neighbour:
`test_slurm_watch.py`, jobs that it has taken one by one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from slurm_scene import AWAY, SLURM, Lines, Scene
from tiny_plan import TinyPlan

from agentc.exit_codes import EXIT_DONE, EXIT_FAILED
from agentc.plan.work import find_work, read_plan
from agentc.run import drive, leftovers, slurm_endings, slurm_queue
from agentc.run.observe import Observer, ServerWatch
from agentc.run.slurm_queue import QueueState
from agentc.run.slurm_watch import POLL_S
from agentc.run.snakemake_process import DriverOptions
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.staging import submission


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
    assert "sbatch call" not in refusal.message


def drive_refused(
    plan: TinyPlan,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    times: int,
    taken: str = "",
    before: str = "",
) -> tuple[int, list[str]]:
    """Drive a plan whose first submissions are refused with these words, and `before` them in the
    log; `taken` are lines of the queue until a job is cancelled."""
    plan.job("only", rows=1)
    count = plan.folder / "refusals"
    script = plan.folder / "stand_in.py"
    script.write_text(
        "import pathlib, subprocess, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "known = len(count.read_text()) if count.exists() else 0\n"
        f"if known < {times}:\n"
        "    count.write_text('x' * (known + 1))\n"
        f"    print({before + chr(10) + refused(words)!r})\n"
        "    sys.exit(1)\n"
        "sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
    )
    queue = plan.folder / "bin" / "squeue"
    queue.parent.mkdir()
    queue.write_text(f"#!/bin/sh\necho x >> {plan.folder}/asked\ncat {plan.folder}/taken\n"
                     f"[ $(wc -l < {plan.folder}/asked) -gt 1 ]\n")  # fmt: skip
    cancel = queue.with_name("scancel")
    cancel.write_text(f"#!/bin/sh\necho $@ >> {plan.folder}/cancelled\n: > {plan.folder}/taken\n")
    for command in (queue, cancel):
        command.chmod(0o755)
    (plan.folder / "taken").write_text(taken)
    monkeypatch.setenv("PATH", f"{queue.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(drive, "_QUEUE_S", 0.01)
    monkeypatch.setattr(drive, "_PAUSE_S", 0.01)
    argv = [sys.executable, str(script), *plan.argv("only")]
    monkeypatch.setattr(drive, "driver_argv", lambda *_: argv)
    layout, view = StoreLayout(plan.store), Lines()
    work = find_work(read_plan(plan.write()), layout)
    observer = Observer(layout, work.missing, since=0.0)
    servers = ServerWatch(layout, work.document, since=0.0)
    options = DriverOptions(profile=SLURM, token="a1b2")
    return drive.drive(work, plan.folder, options, observer, servers, view), view.said


def test_submission_while_the_controller_is_away_is_waited_for(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = drive_refused(plan, monkeypatch, AWAY, times=2)
    assert code == EXIT_DONE, said
    assert said[0] == f"SLURM takes no jobs ({AWAY}): waiting for it; Ctrl-C ends this"
    assert said[1] == "SLURM answers: continuing"
    assert plan.published("only")


def test_job_whose_submission_was_taken_without_an_answer_is_not_there_twice(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = "7|agentc-a1b2.rollout|PENDING|None|\n8|agentc-c3d4.rollout|PENDING|None|\n"
    lost = "sbatch: error: Socket timed out on send/recv"
    code, said = drive_refused(plan, monkeypatch, lost, times=1, taken=taken)
    assert code == EXIT_DONE, said
    assert said[1:] == [
        "SLURM took job 7 and did not say so: cancelled, submitted again",
        "waiting for 1 job in the queue",
        "SLURM answers: continuing",
    ]
    assert (plan.folder / "cancelled").read_text() == "--quiet 7\n"


def test_job_that_was_known_when_the_controller_went_is_let_finish(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it ends on its own while it is waited for."""
    asked: list[str] = []

    def queue(*_: object) -> tuple[slurm_queue.QueuedJob, ...]:
        asked.append("queue")
        job = slurm_queue.QueuedJob("7", "RUNNING", "None", None)
        return (job,) if len(asked) < 3 else ()

    monkeypatch.setattr(slurm_queue, "queued_jobs", queue)
    monkeypatch.setattr(drive, "submitted", lambda _: {"7": "rollout/1"})
    code, said = drive_refused(plan, monkeypatch, AWAY, times=1)
    assert code == EXIT_DONE, said
    assert said[1:] == ["waiting for 1 job in the queue", "SLURM answers: continuing"]
    assert len(asked) == 3
    assert not (plan.folder / "cancelled").exists()


def test_submission_that_slurm_will_never_take_ends_the_run(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = drive_refused(plan, monkeypatch, "sbatch: error: invalid partition", times=1)
    assert (code, said) == (EXIT_FAILED, [])


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("", "sbatch: error: Unable to open file assigned"),
        ("Failed node will be excluded from future submissions.",
         "sbatch: error: Requested node configuration is not available"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("times", [1, 2])
def test_refusal_that_snakemake_remembers_a_failed_node_by_is_tried_once_more(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch, before: str, words: str, times: int
) -> None:
    code, said = drive_refused(plan, monkeypatch, words, times=times, before=before)
    assert said == [
        f"SLURM refused a submission ({words}); a failed node that Snakemake excludes may be the "
        "cause: starting it once more"
    ]
    assert (code, plan.published("only")) == (
        (EXIT_DONE, True) if times == 1 else (EXIT_FAILED, False)
    )


def array_log(plan: TinyPlan, number: str, *names: str) -> str:
    """What Snakemake and its plugin 2.8.0 write about an array of these jobs."""
    text = ""
    for own, name in enumerate(names):
        kind, key = plan.object(name).split("/")
        text += f"[Mon Nov 23 02:55:51 2026]\nrule {kind}:\n    output: /x/artifact.json (update)\n"
        text += f"    jobid: {own}\n    reason: Missing output files\n    wildcards: key={key}\n"
    return text + (
        f"Submitted array job with Snakemake IDs {','.join(map(str, range(len(names))))} and SLURM"
        f" job ID {number}. The individual task IDs are 1-{len(names)}.\n"
    )


def test_job_of_an_array_that_somebody_cancelled(plan: TinyPlan) -> None:
    """Each Snakemake counts its jobs anew: the same number is another job in the next array."""
    scene = Scene(plan)
    first = array_log(plan, "9", "first", "second")
    scene.log.write_text(first + array_log(plan, "11", "second", "first"))
    assert slurm_endings.submitted(scene.log.read_text()) == {
        "9_1": plan.object("first"), "9_2": plan.object("second"),
        "11_1": plan.object("second"), "11_2": plan.object("first"),
    }  # fmt: skip
    scene.log.write_text(first)
    scene.queue = {"9_1": "RUNNING", "9_2": "RUNNING"}
    assert scene.after(POLL_S) == ("wait", [])
    scene.queue["9_2"] = "CANCELLED"
    assert scene.after(POLL_S) == ("wait", [])
    verdict, said = scene.after(2 * POLL_S)
    assert verdict == "failed"
    assert said[0].startswith("SLURM ended job 9_2 (second): CANCELLED; somebody cancelled it")
    (ending,) = slurm_endings.read_endings(scene.log.read_text(), scene.work)
    assert (ending.number, ending.unit) == ("9_2", plan.object("second"))


def test_array_that_slurm_does_not_take() -> None:
    words = "sbatch: error: Unable to contact slurm controller (connect failure)"
    log = (
        "SLURM sbatch failed for array job submission (tasks 1-3). The error message was "
        f"'{words}'.\n    sbatch call:\n"
        f"    message: Array job submission failed with exception: {words}\n    jobid: 2\n"
    )
    assert [refusal.away for refusal in slurm_endings.read_refusals(log)] == [True, True]


def test_each_task_of_an_array_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else those that wait share a line, whose number is no job's; and its comment is that of the
    first task."""
    command = tmp_path / "squeue"
    comment = "rule_rollout_wildcards_" + "a" * 32
    command.write_text(
        "#!/bin/sh\nfor word; do case $word in\n"
        f"  --format=%i?%T*) printf '9_1|PENDING|None|agentc-x\\n9_2|PENDING|None|agentc-x\\n';;\n"
        f"  --format=%i?%j*) printf '9_1|agentc-x|PENDING|None|{comment}\\n"
        f"8|agentc-x|PENDING|None|{comment}\\n';;\n"
        '  --array) each=1;;\nesac; done\n[ -n "$each" ]\n'
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert slurm_queue.states("x") == dict.fromkeys(("9_1", "9_2"), QueueState("PENDING"))
    task, plain = slurm_queue.queued_jobs(["x"])
    assert (task.unit, plain.unit) == ("rollout/*", "rollout/" + "a" * 32)
    assert leftovers._may_be_of(task, {"rollout/" + "b" * 32})
    assert not leftovers._may_be_of(task, {"sft/" + "b" * 32})
    assert not leftovers._may_be_of(plain, {"rollout/" + "b" * 32})


def test_a_task_of_an_array_says_that_it_was_out_of_time(plan: TinyPlan) -> None:
    """By the number that the queue has for it, which is not its own."""
    assert submission({"SLURM_JOB_ID": "12"}) == "12"
    task = {"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "2"}
    assert submission(task) == "9_2"
    assert submission({}) is None


ABORTED = """\
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
slurmstepd-n1: error: *** STEP 7.0 ON n1 FAILED (non-zero exit code or other failure mode) ***
srun: error: n1: task 0: Terminated
"""
MISSING = """\
/bin/bash: line 1: /home/lab/agentc-env/bin/python3: No such file or directory
srun: error: n1: task 0: Exited with exit code 127
"""


@pytest.mark.parametrize(
    ("text", "status", "again", "said"),
    [
        # A killed controller that is back starts a job once more, and its node ends the second.
        (ABORTED, {}, True, "SLURM's job 7 (first): it could not begin (srun: error: n1: task 0:"),
        (MISSING, {}, False, "SLURM's job 7 (first): it ended before its program started; its log"),
        (ABORTED, {"state": "failed", "message": "interrupted by SIGTERM"}, False, None),
        (MISSING, {"state": "failed", "message": "its program exited with 127"}, False, None),
    ],
)
def test_job_that_failed_before_its_wrapper_wrote_anything(
    text: str, status: dict[str, str], again: bool, said: str | None, plan: TinyPlan
) -> None:
    """It was in none of the run's words: the log of Snakemake had only its number."""
    scene = Scene(plan)
    kind, key = plan.object("first").split("/")
    log = plan.folder / f"rule_{kind}" / key / "7.log"
    log.parent.mkdir(parents=True)
    log.write_text(text)
    scene.log.write_text(
        f"Job 1 has been submitted with SLURM jobid 7 (log: {log}).\n"
        "SLURM-job '7' failed, SLURM status is: 'FAILED'. Reason: Unknown.\n"
    )
    if status:
        staging = plan.staging("first")
        staging.mkdir(parents=True)
        (staging / "status.json").write_text(json.dumps(status))
    (ending,) = slurm_endings.read_endings(scene.log.read_text(), scene.work)
    assert ending.again is again
    described = slurm_endings.describe(scene.log, scene.work)
    assert [line[: len(said)] for line in described] == [said] if said else described == []
