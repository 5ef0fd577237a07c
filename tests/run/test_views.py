"""What people see: sentences, the live table, and how observation turns files into numbers."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.support.pace import least
from tiny_plan import TinyPlan

from agentc.run.live_view import LiveView, split_waiting
from agentc.run.observe import JobSnapshot, Observer
from agentc.run.text_view import PlainView, sentence
from agentc.runtime.store.layout import StoreLayout
from agentc.text import duration

RUNNING = JobSnapshot(
    id="eto.1.dpo",
    state="running",
    done=40,
    total=100,
    unit="steps",
    rate=2.04,
    remaining=29.4,
    numbers={"loss": 0.41234, "tokens_per_s": 350.2},
    seconds=12.0,
)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (
            RUNNING,
            "running, 40/100 steps, 2.0 steps/s, loss 0.4123, 350.2 tokens/s, about 29 s left",
        ),
        (JobSnapshot(id="a", state="waiting"), "waiting"),
        (JobSnapshot(id="a", state="done", seconds=200.0), "done in 3 min 20 s"),
        (JobSnapshot(id="a", state="failed", message="exited\nmore"), "failed: exited"),
        (
            JobSnapshot(id="a", state="failed", message="interrupted by SIGTERM"),
            "stopped by SIGTERM; `agentc run` continues",
        ),
        (
            JobSnapshot(id="a", state="failed", message="interrupted"),
            "stopped; `agentc run` continues",
        ),
        (
            JobSnapshot(id="a", state="failed", message="interrupted system call"),
            "failed: interrupted system call",
        ),
        (
            JobSnapshot(id="a", state="running", done=3, unit="rows", rate=0.02),
            "running, 3 rows, 1.2 rows/min",
        ),
        (
            JobSnapshot(
                id="a", state="running", done=3, unit="rows", numbers={"rows_per_s": 200.0}
            ),
            "running, 3 rows, 200 rows/s",
        ),
    ],
)  # fmt: skip
def test_sentence(seen: JobSnapshot, expected: str) -> None:
    assert sentence(seen) == expected


def test_plain_lines_leave_the_message_of_a_full_disk_to_the_end() -> None:
    full = "cannot write rows to /s: no space is left on its file system (ENOSPC; 0 B free)"
    written = io.StringIO()
    with PlainView(written) as view:
        view.show([JobSnapshot(id="a", state="running")])
        view.show([JobSnapshot(id="a", state="failed", message=full)])
        view.show([JobSnapshot(id="b", state="failed", message="its program exited with 1")])
    shown = [line.split(" ", 1)[1] for line in written.getvalue().splitlines()]
    assert shown == [
        "a: running", "a: failed: its disk is full", "b: failed: its program exited with 1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (41.2, "41 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_duration(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def drawn(jobs: list[JobSnapshot], width: int = 120, height: int = 30) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, height=height, force_terminal=False)
    view = LiveView("quickstart", console)
    console.print(view.table(view._fit(jobs)))
    return stream.getvalue()


def test_table_groups_rounds_and_shows_measures() -> None:
    jobs = [
        JobSnapshot(id="sft", state="done", seconds=41.0),
        RUNNING,
        JobSnapshot(id="eto.1.evaluate", state="waiting"),
        JobSnapshot(id="eto.2.dpo", state="waiting"),
    ]
    lines = drawn(jobs).splitlines()
    names = [
        line.split()[-1] if line.strip().startswith("eto") else line.split()[1] for line in lines
    ]
    assert names == ["sft", "eto.1", "dpo", "evaluate", "eto.2", "dpo"]
    dpo = lines[2]
    for part in ("40/100 steps", "2.0 steps/s", "loss 0.4123", "about 29 s left"):
        assert part in dpo


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_names_are_whole_at_any_width(width: int) -> None:
    long = "evaluate_untrained:rollout"
    lines = drawn([RUNNING, JobSnapshot(id=long, state="waiting")], width=width).splitlines()
    assert any(long in line for line in lines)
    assert all(len(line) <= width for line in lines)


def test_small_terminal_shows_active_and_failed_jobs_first() -> None:
    jobs = [JobSnapshot(id=f"done{i}", state="done") for i in range(50)]
    jobs += [JobSnapshot(id="bad", state="failed"), RUNNING]
    jobs += [JobSnapshot(id=f"later{i}", state="waiting") for i in range(50)]
    shown = drawn(jobs, height=12)
    assert "bad" in shown
    assert "dpo" in shown
    assert len(shown.splitlines()) <= 12


def test_the_log_of_a_running_job_is_named(tmp_path: Path) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=True)
    with LiveView("quickstart", console, log=lambda job: tmp_path / job / "log.txt") as view:
        view.show([JobSnapshot(id="sft", state="waiting")])
        assert "agentc logs" not in stream.getvalue()
        view.show([JobSnapshot(id="sft", state="done"), RUNNING])
        assert f"`agentc logs {RUNNING.id} -f`: " in stream.getvalue()


def test_waiting_jobs_are_one_line_where_they_are_many() -> None:
    """A screen of 20 lines has room for what runs, at any size of the plan."""
    jobs = [JobSnapshot(id=f"done{i}", state="done", seconds=1.0) for i in range(30)]
    jobs += [RUNNING, *(JobSnapshot(id=f"later{i}", state="waiting") for i in range(30))]
    stream = io.StringIO()
    console = Console(file=stream, width=80, height=20, force_terminal=True, color_system=None)
    with LiveView("quickstart", console) as view:
        view.show(jobs)
        shown = stream.getvalue()
        few, waiting = split_waiting(jobs[30:33])
    assert "eto.1" in shown
    assert "40/100 steps" in shown
    assert "30 jobs waiting: later0, later1" in shown
    assert "more jobs: " in shown
    assert len(shown.strip().splitlines()) <= 20
    assert (len(few), waiting) == (3, []), "a few have lines of their own"


def test_plain_lines_tell_changes_only() -> None:
    stream = io.StringIO()
    view = PlainView(stream)
    view.show([JobSnapshot(id="a", state="waiting"), RUNNING])
    view.show([JobSnapshot(id="a", state="waiting"), RUNNING])
    view.show(
        [
            JobSnapshot(id="a", state="running"),
            JobSnapshot(id="eto.1.dpo", state="done", seconds=2.0),
        ]
    )
    lines = [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()]
    assert lines == [
        f"eto.1.dpo: {sentence(RUNNING)}",
        "a: running",
        "eto.1.dpo: done in 2.0 s",
    ]


def write_state(plan: TinyPlan, status: dict[str, Any], progress: dict[str, Any] | None) -> None:
    staging = plan.staging("act")
    staging.mkdir(parents=True, exist_ok=True)
    known = {"pid": os.getpid(), "host": os.uname().nodename, "time": time.time(), "message": ""}
    (staging / "status.json").write_text(json.dumps({**known, **status}))
    if progress is not None:
        (staging / "progress.json").write_text(json.dumps(progress))


def test_rate_of_a_resumed_job_counts_from_where_it_went_on(plan: TinyPlan) -> None:
    job = plan.job("act", rows=100)
    observer = Observer(StoreLayout(plan.store), [job], since=0.0)
    now = time.time()
    state = {"state": "running", "attempts": 2}
    write_state(plan, state, {"done": 80, "total": 100, "unit": "rows", "time": now})
    assert observer.observe()[0].rate is None
    write_state(plan, state, {"done": 90, "total": 100, "unit": "rows", "time": now + 5})
    os.utime(plan.staging("act") / "progress.json", (now + 5, now + 5))
    (seen,) = observer.observe()
    assert seen.rate == pytest.approx(2.0)
    assert seen.remaining == pytest.approx(10.0, abs=0.5)


def test_first_look_at_a_fresh_job_takes_its_own_start(plan: TinyPlan) -> None:
    job = plan.job("act", rows=100)
    now = time.time()
    progress = {"done": 50, "total": 100, "unit": "rows", "time": now, "started": now - 25}
    write_state(plan, {"state": "running", "attempts": 1}, progress)
    (seen,) = Observer(StoreLayout(plan.store), [job], since=0.0).observe()
    assert seen.rate == pytest.approx(2.0)


@pytest.mark.parametrize("attempts", [1, 2])
def test_rate_of_a_program_that_says_what_was_done_before(plan: TinyPlan, attempts: int) -> None:
    """One look tells, also at a job that goes on from another's end in its first attempt."""
    job = plan.job("act", rows=100)
    now = time.time()
    progress = {"done": 60, "total": 100, "unit": "rows", "time": now, "started": now - 5}
    write_state(plan, {"state": "running", "attempts": attempts}, {**progress, "before": 50})
    (seen,) = Observer(StoreLayout(plan.store), [job], since=0.0).observe()
    assert seen.rate == pytest.approx(2.0)
    assert seen.remaining == pytest.approx(20.0, abs=2.0)


def test_old_news_of_an_earlier_run_is_ignored(plan: TinyPlan) -> None:
    job = plan.job("act")
    write_state(plan, {"state": "failed", "message": "yesterday"}, None)
    os.utime(plan.staging("act") / "status.json", (100, 100))
    assert Observer(StoreLayout(plan.store), [job], since=200.0).observe()[0].state == "waiting"
    assert Observer(StoreLayout(plan.store), [job], since=0.0).observe()[0].state == "failed"


def test_a_node_whose_clock_is_behind_tells_no_old_news(plan: TinyPlan) -> None:
    """Its files are dated by the file server; what it writes into them, by its own clock."""
    job = plan.job("act", rows=100)
    since = time.time() - 60
    behind = time.time() - 600
    state = {"state": "running", "attempts": 1, "time": behind - 1, "host": "slow"}
    progress = {"done": 50, "total": 100, "unit": "rows", "time": behind, "started": behind - 25}
    write_state(plan, {**state, "warning": "its clock is behind"}, progress)
    observer = Observer(StoreLayout(plan.store), [job], since=since)
    (seen,) = observer.observe()
    assert (seen.state, seen.rate) == ("running", pytest.approx(2.0))
    assert seen.remaining == pytest.approx(25.0, abs=2.0)
    assert seen.seconds == pytest.approx(0.0, abs=2.0)
    assert observer.warnings() == ["act: its clock is behind"]
    observer.observe()
    assert observer.warnings() == []
    write_state(plan, {**state, "state": "failed", "message": "why"}, None)
    observer.observe()
    assert [one.message for one in observer.failures()] == ["why"]


def test_what_a_program_warns_of_is_told_once(plan: TinyPlan) -> None:
    """While it runs; in a fast job that ends between two looks, from its facts. What was finished
    before is known already."""
    job = plan.job("act", rows=100)
    progress = {"done": 0, "total": 100, "unit": "rows", "time": time.time()}
    observer = Observer(StoreLayout(plan.store), [job], since=0.0)
    write_state(plan, {"state": "running", "attempts": 1}, {**progress, "warnings": ["slow"]})
    (seen,) = observer.observe()
    assert seen.warnings == ("slow",)
    assert observer.warnings() == ["act: warning: slow"]
    publish(plan, {"warnings": ["slow", "late"]})
    (seen,) = observer.observe()
    assert (seen.state, seen.warnings) == ("done", ("slow", "late"))
    assert observer.warnings() == ["act: warning: late"]
    later = Observer(StoreLayout(plan.store), [job], since=0.0)
    (seen,) = later.observe()
    assert seen.warnings == ("slow", "late")
    assert later.warnings() == []


def publish(plan: TinyPlan, facts: dict[str, Any]) -> None:
    """The object of the job `act`, with these facts in its manifest."""
    folder = plan.store / "objects" / plan.staging("act").relative_to(plan.store / "staging")
    folder.mkdir(parents=True)
    (folder / "artifact.json").write_text(json.dumps({"wall_s": 1.0, "facts": facts}))


def test_dead_wrapper_is_noticed_on_this_node_only(plan: TinyPlan) -> None:
    job = plan.job("act")
    observer = Observer(StoreLayout(plan.store), [job], since=0.0)
    write_state(plan, {"state": "running", "pid": 2**22 + 1}, None)
    assert observer.observe()[0].state == "killed"
    write_state(plan, {"state": "running", "pid": 2**22 + 1, "host": "elsewhere"}, None)
    assert observer.observe()[0].state == "running"


def test_looking_at_ten_thousand_jobs_is_bearable(tmp_path: Path) -> None:
    plan = TinyPlan(tmp_path)
    jobs = [plan.job(f"stage.{number}", rows=number) for number in range(10_000)]
    observer = Observer(StoreLayout(plan.store), jobs, since=0.0)

    def seconds() -> float:
        began = time.process_time()
        assert len(observer.observe()) == 10_000
        return time.process_time() - began

    assert least(seconds, 1.0) < 1.0
