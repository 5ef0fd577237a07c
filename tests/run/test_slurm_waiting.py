"""Jobs that wait in SLURM's queue: what a run says of them, and what other commands show. Queue and
clock are told to it here; tests/slurm has the real ones."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from slurm_scene import Scene
from tiny_plan import TinyPlan

from agentc.cli import main
from agentc.program.job import write_json
from agentc.run.active_runs import attended
from agentc.run.observe import Observer
from agentc.run.slurm_records import WaitingRecord
from agentc.run.slurm_waiting import numbers_text, why_never
from agentc.run.slurm_watch import POLL_S
from agentc.run.text_view import details, sentence
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder


@pytest.mark.parametrize(
    "reason",
    [
        *("PartitionTimeLimit", "PartitionNodeLimit", "PartitionDown", "PartitionInactive"),
        *("AccountNotAllowed", "QOSNotAllowed", "InvalidAccount", "InvalidQOS", "BadConstraints"),
        *("DependencyNeverSatisfied", "QOSMaxWallDurationPerJobLimit", "QOSMaxCpuPerJobLimit"),
        *("AssocMaxWallDurationPerJobLimit", "QOSMaxGRESPerNode", "QOSTimeLimit"),
        "AssociationTimeLimit",
        "Job's account not permitted to use this partition (vip allows other,more not root)",
        "Job's QOS not permitted to use this partition (vip allows long not normal)",
    ],
)
def test_reasons_that_no_waiting_ends(reason: str) -> None:
    assert why_never(reason)


@pytest.mark.parametrize(
    "reason",
    [
        *("Resources", "Priority", "Dependency", "QOSMaxJobsPerUserLimit", "QOSGrpCpuLimit", ""),
        *("ReqNodeNotAvail, UnavailableNodes:n1", "JobHeldUser", "BeginTime", "AssocMaxJobsLimit"),
        *("QOSMaxCpuPerUserLimit", "Licenses", "MaxGRESPerAccount"),
    ],
)
def test_reasons_that_pass(reason: str) -> None:
    assert why_never(reason) == ""


def test_numbers_in_words() -> None:
    assert numbers_text(["9"]) == "job 9"
    assert numbers_text(["11", "9", "10", "7", "12_1"]) == "jobs 7, 9-11, 12_1"


def test_a_job_that_can_never_start_is_said_once_with_its_setting(plan: TinyPlan) -> None:
    asked: list[str] = []

    def explain(unit: str) -> list[str]:
        asked.append(unit)
        return ["10 min (default-resources: runtime), and the partition `tiny` ends jobs after 3"]

    scene = Scene(plan, explain=explain)
    verdict, said = scene.after(
        POLL_S, _7="PENDING PartitionTimeLimit", _8="PENDING PartitionTimeLimit"
    )
    assert verdict == "wait"
    assert said == [
        "SLURM does not start jobs 7-8 (first, second): PartitionTimeLimit; 10 min "
        "(default-resources: runtime), and the partition `tiny` ends jobs after 3"
    ]
    assert asked == [plan.object("first")], "once for each reason"
    assert scene.after(POLL_S) == ("wait", [])
    assert scene.after(3600) == ("wait", []), "nor among those that only have to wait"


def test_reason_that_preflight_knows_nothing_of(plan: TinyPlan) -> None:
    scene = Scene(plan)
    _, said = scene.after(POLL_S, _7="PENDING PartitionDown")
    assert said == [
        "SLURM does not start job 7 (first): PartitionDown; its partition takes no jobs now; name "
        "another one (`slurm_partition` in the profile), or ask those who run the cluster"
    ]


def test_jobs_that_wait_are_mentioned_after_a_minute_and_then_seldom(plan: TinyPlan) -> None:
    scene = Scene(plan)
    assert scene.after(POLL_S, _7="PENDING Resources", _8="PENDING Priority") == ("wait", [])
    assert scene.after(50) == ("wait", [])
    assert scene.after(20)[1] == [
        "2 jobs in SLURM's queue for up to 70 s: job 7 (Resources), job 8 (Priority)"
    ]
    lines = 0
    for _ in range(24 * 60):
        lines += len(scene.after(60)[1])
    assert 4 <= lines <= 7, "at ten minutes, an hour, six hours, ..."


def test_drained_nodes_and_limits_come_with_what_they_mean(plan: TinyPlan) -> None:
    scene = Scene(plan)
    drained = "PENDING ReqNodeNotAvail, UnavailableNodes:n2"
    scene.after(POLL_S, _7=drained, _8="PENDING QOSMaxJobsPerUserLimit")
    (line,) = scene.after(70)[1]
    assert "`sinfo -R` shows why" in line
    assert "a limit of the account or qos, until other jobs end" in line


def test_nodes_that_are_down_come_with_what_shows_why(plan: TinyPlan) -> None:
    scene = Scene(plan)
    scene.after(POLL_S, _7="PENDING Nodes required for job are DOWN, DRAINED or reserved")
    assert "`sinfo -R` shows why" in scene.after(70)[1][0]


def test_suspended_job_is_said_once_and_again_when_it_is_once_more(plan: TinyPlan) -> None:
    scene = Scene(plan)
    said = [
        "SLURM has suspended job 7 (first): `scontrol resume 7` resumes it, `scancel 7` ends it"
    ]
    assert scene.after(POLL_S, _7="SUSPENDED")[1] == said
    assert scene.after(POLL_S)[1] == []
    scene.after(POLL_S, _7="RUNNING")
    assert scene.after(POLL_S, _7="SUSPENDED")[1] == said


def test_pending_server_is_shown_for_itself_and_for_its_clients(plan: TinyPlan) -> None:
    scene = Scene(plan, shared=["second"])
    copy = StoreLayout(plan.store).root / "servers" / str(os.getuid()) / "k1" / "1"
    copy.mkdir(parents=True)
    write_json(copy / "launched.json", {"slurm": "70"})
    _, said = scene.after(POLL_S, _70="PENDING PartitionDown")
    assert said[0].startswith("SLURM does not start job 70 (server/policy): PartitionDown; ")
    observer = Observer(
        scene.work.layout, scene.work.missing, since=0.0, waiting=lambda: scene.record.now
    )
    first, second = observer.observe()
    assert (first.state, first.queue) == ("waiting", None)
    assert second.state == "waiting"
    assert sentence(second).startswith("waiting for server/policy: queued")
    assert sentence(second).endswith("(SLURM job 70: PartitionDown)")
    assert "name another one" in details(second)[0]


@contextmanager
def running(plan: TinyPlan, scene: Scene) -> Iterator[WaitingRecord]:
    """A run of the plan is alive; its record of waiting jobs."""
    layout = StoreLayout(plan.store)
    folder = RunFolder.of(layout, "tiny")
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.last_plan.write_text(plan.write().read_text())
    with attended(layout, "tiny", "slurm") as run:
        scene.watch._news._record = record = WaitingRecord(layout, "tiny", run.token)
        yield record


def shown(capsys: pytest.CaptureFixture[str], plan: TinyPlan, *words: str) -> str:
    """What a command prints about the plan's run."""
    main([*words, "--store", str(plan.store)])
    return capsys.readouterr().out


def test_status_and_why_show_number_reason_and_remedy(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Scene(plan)
    with running(plan, scene):
        scene.after(POLL_S, _7="PENDING PartitionTimeLimit", _8="PENDING Resources")
        text = shown(capsys, plan, "status", "tiny")
        assert "(SLURM job 7: PartitionTimeLimit)" in text
        assert "lower `placement: {minutes: ...}` of the stage" in text
        assert "(SLURM job 8: Resources)" in text
        lines = shown(capsys, plan, "status", "tiny", "--format", "json").splitlines()
        first, second = map(json.loads, lines)
        assert (first["state"], second["state"]) == ("queued", "queued")
        assert first["queue"]["number"] == "7"
        assert first["queue"]["reason"] == "PartitionTimeLimit"
        assert first["queue"]["since"] > 0
        why = shown(capsys, plan, "why", "first")
        assert "(SLURM job 7: PartitionTimeLimit)" in why
        assert "lower `placement: {minutes: ...}` of the stage" in why
        scene.after(POLL_S, _7="RUNNING")
        assert "job 7" not in shown(capsys, plan, "status", "tiny")


def status_of(plan: TinyPlan, name: str, **fields: Any) -> None:
    plan.staging(name).mkdir(parents=True, exist_ok=True)
    value = {"host": "elsewhere", "pid": 1, "attempts": 1, "message": "", **fields}
    write_json(plan.staging(name) / "status.json", value)


def test_requeued_job_is_queued_again(plan: TinyPlan, capsys: pytest.CaptureFixture[str]) -> None:
    """Its last attempt left `interrupted by SIGTERM`, or `running` where its node is gone."""
    scene = Scene(plan)
    status_of(plan, "first", state="failed", message="interrupted by SIGTERM")
    status_of(plan, "second", state="running")
    for name in ("first", "second"):
        os.utime(plan.staging(name) / "status.json", (1e9, 1e9))
    with running(plan, scene):
        text = shown(capsys, plan, "status", "tiny")
        assert "stopped by SIGTERM" in text
        scene.after(POLL_S, _7="PENDING BeginTime", _8="PENDING BeginTime")
        text = shown(capsys, plan, "status", "tiny")
        assert text.count("queued") == 2
        assert "SIGTERM" not in text
        status_of(plan, "first", state="running")
        os.utime(plan.staging("first") / "status.json", (4e9, 4e9))
        assert "running" in shown(capsys, plan, "status", "tiny")


def test_requeued_job_that_starts_has_no_old_status(plan: TinyPlan) -> None:
    """SLURM says RUNNING seconds before the wrapper writes its own status."""
    scene = Scene(plan)
    status_of(plan, "first", state="failed", message="interrupted by SIGTERM")
    os.utime(plan.staging("first") / "status.json", (1e9, 1e9))
    observer = Observer(
        scene.work.layout, scene.work.missing, since=0.0, waiting=lambda: scene.record.now
    )
    assert observer.observe()[0].state == "failed"
    scene.after(POLL_S, _7="PENDING BeginTime")
    assert observer.observe()[0].state == "queued"
    scene.after(POLL_S, _7="RUNNING")
    assert observer.observe()[0].state == "waiting"
    status_of(plan, "first", state="running")
    os.utime(plan.staging("first") / "status.json", (4e9, 4e9))
    assert observer.observe()[0].state == "running"


def test_suspended_job_is_shown_as_suspended(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Scene(plan)
    status_of(plan, "first", state="running")
    with running(plan, scene):
        scene.after(POLL_S, _7="SUSPENDED")
        assert "suspended by SLURM" in shown(capsys, plan, "status", "tiny")
        line = shown(capsys, plan, "status", "tiny", "--format", "json").splitlines()[0]
        assert json.loads(line)["state"] == "running"
        assert json.loads(line)["queue"]["state"] == "SUSPENDED"


def test_status_after_a_kill_counts_the_jobs_in_the_queue(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(plan)
    with running(plan, scene) as record:
        run = record._path.stem
        left = RunFolder.of(StoreLayout(plan.store), "tiny").active / f"{run}.json"
        text = left.read_text()
    left.write_text(text)
    comment = "rule_{}_wildcards_{}".format(*plan.object("first").split("/"))
    squeue = plan.folder / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.write_text(
        f"#!/bin/sh\necho '98|agentc-{run}_1|PENDING|Resources|{comment}'\n"
        f"echo '99|agentc-{run}_1|RUNNING|None|other'\n"
    )
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{squeue.parent}:{os.environ['PATH']}")
    said = shown(capsys, plan, "status", "tiny")
    assert "jobs 98-99 are in SLURM's queue (1 PENDING, 1 RUNNING)" in said
    assert "(SLURM job 98: Resources)" in said


def test_status_after_a_kill_counts_another_user_s_jobs_too(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`squeue --me` shows none of them."""
    scene = Scene(plan)
    with running(plan, scene) as record:
        left = RunFolder.of(StoreLayout(plan.store), "tiny").active / f"{record._path.stem}.json"
        told = json.loads(left.read_text())
    another = os.geteuid() + 4321
    left.write_text(json.dumps({**told, "uid": another}))
    os.utime(left, (1e9, 1e9))
    comment = "rule_{}_wildcards_{}".format(*plan.object("first").split("/"))
    squeue = plan.folder / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.write_text(
        f'#!/bin/sh\ncase " $* " in *" --user={another} "*)\n'
        f"echo '98|agentc-{record._path.stem}_1|PENDING|Resources|{comment}';; esac\n"
    )
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{squeue.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 77)
    said = shown(capsys, plan, "status", "tiny")
    assert f"a run of user {another} was killed, and its job 98 is in SLURM's queue" in said
    assert f"only user {another} (or an administrator) can end them" in said
    assert "(SLURM job 98: Resources)" in said


@pytest.mark.parametrize(
    ("state", "status", "shown_words"),
    [
        ("TIMEOUT", {"state": "running"}, "its time limit was over"),
        ("CANCELLED", {"state": "failed", "message": "interrupted by SIGTERM"}, "somebody cancel"),
        ("CANCELLED", None, "somebody cancelled it"),
        ("OUT_OF_MEMORY", {"state": "failed", "message": "its program exited with 1\nRaise it"},
         "it used more memory than it had asked for"),
    ],
)  # fmt: skip
def test_the_cause_of_an_end_outlives_the_terminal(
    plan: TinyPlan,
    capsys: pytest.CaptureFixture[str],
    state: str,
    status: dict[str, str] | None,
    shown_words: str,
) -> None:
    scene = Scene(plan)
    if status is not None:
        status_of(plan, "first", **status)
    with scene.log.open("a") as log:
        log.write(f"SLURM-job '7' failed, SLURM status is: '{state}'. Reason: Unknown.\n")
    with running(plan, scene):
        scene.after(POLL_S, _7=state)
    for words in (("status", "tiny"), ("why", "first")):
        text = shown(capsys, plan, *words)
        assert f"SLURM ended job 7 (first): {state}" in text
        assert shown_words in text
        if status is not None and "\n" in status.get("message", ""):
            assert "Raise it" in text, "the second line of a message"
    line = json.loads(shown(capsys, plan, "status", "tiny", "--format", "json").splitlines()[0])
    assert (line["ending"]["number"], line["ending"]["state"]) == ("7", state)
    assert line["ending"]["cause"]
    attempt = json.loads(shown(capsys, plan, "why", "first", "--format", "json"))["attempt"]
    assert attempt["ending"] == line["ending"]
    status_of(plan, "first", state="running")
    os.utime(plan.staging("first") / "status.json", (4e9, 4e9))
    assert "SLURM ended" not in shown(capsys, plan, "status", "tiny"), "a later attempt counts"


def test_a_run_that_is_killed_has_kept_the_cause(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is sure of the end only half a minute later: SLURM may start the job again."""
    scene = Scene(plan)
    status_of(plan, "first", state="failed", message="interrupted by SIGTERM")
    with running(plan, scene):
        assert scene.after(POLL_S, _7="CANCELLED") == ("wait", [])
    assert "SLURM ended job 7 (first): CANCELLED" in shown(capsys, plan, "why", "first")


def test_lines_of_a_run_reach_a_pipe_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else "N jobs to run" would arrive with the first job's line, minutes later."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", out)
    main(["run", str(tmp_path / "none.yaml"), "--plain"])
    assert out.line_buffering
