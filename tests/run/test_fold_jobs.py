"""A sweep on the terminal: folded stages, and how long the whole still takes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console
from tiny_plan import TinyPlan

from agentc.cli import main
from agentc.cost import Estimate, Quantity
from agentc.plan.stage_names import of_all_cells
from agentc.plan.work import find_work
from agentc.run.live_view import CoresInUse, LiveView, TimeLeft
from agentc.run.observe import JobSnapshot
from agentc.run.record import Record
from agentc.run.text_view import FoldedJobs, fold_jobs, stage_path
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder


def cell(number: int, **more: Any) -> JobSnapshot:
    return JobSnapshot(id=f"eto.1.dpo@beta=0.1,seed={number}", **more)


BASE = JobSnapshot(id="base", state="done", seconds=5.0)
RUNNING = {"state": "running", "done": 40, "total": 100, "unit": "steps", "remaining": 29.4}


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("sft", "sft"),
        ("evaluate:rollout", "evaluate:rollout"),
        ("eto.1.dpo@beta=0.1,seed=0", "eto.1.dpo@*"),
        ("evaluate@model=a:b,seed=0:rollout", "evaluate@*:rollout"),
    ],
)
def test_a_name_without_its_cell(name: str, folded: str) -> None:
    assert of_all_cells(name) == folded


def test_a_cell_with_dots_is_no_part_of_the_path() -> None:
    assert stage_path("eto.1.dpo@beta=0.1,seed=0") == ("eto.1", "dpo@beta=0.1,seed=0")
    assert stage_path("sft@lr=0.5") == ("", "sft@lr=0.5")


def test_two_cells_are_one_line_and_a_failed_one_has_its_own() -> None:
    jobs = [BASE, cell(0, state="done", seconds=60.0), cell(1, **RUNNING), cell(2, state="waiting")]
    failed = cell(3, state="failed", message="out of memory")
    first, fold = fold_jobs(jobs)
    assert first == BASE
    assert isinstance(fold, FoldedJobs)
    assert (fold.id, fold.state) == ("eto.1.dpo@*", "running")
    assert fold.sentence() == (
        "1 of 3 done, 1 running (beta=0.1,seed=1: 40/100 steps, about 29 s left), 1 waiting"
    )
    assert fold_jobs([*jobs, failed])[-1] == failed
    _, two = fold_jobs(jobs[:3])
    assert isinstance(two, FoldedJobs)
    assert len(two.jobs) == 2
    assert fold_jobs(jobs[:2]) == jobs[:2], "one cell is shown as it is"
    assert fold_jobs([jobs[1], failed]) == [jobs[1], failed]
    done = [cell(number, state="done", seconds=60.0) for number in range(3)]
    [fold] = fold_jobs(done)
    assert isinstance(fold, FoldedJobs)
    assert fold.sentence() == "3 jobs done in 3 min 00 s together"


def estimate(name: str, seconds: float) -> Estimate:
    return Estimate(
        id=name, stage=name, kind="dpo", object=f"dpo/{name}", state="run", cpus=1, gpus=0,
        seconds=Quantity(seconds, 0.5), tokens=Quantity(0.0), disk=Quantity(0.0), basis="prior",
    )  # fmt: skip


def chain(*names: str) -> dict[str, Any]:
    """Jobs each of which reads the one before."""
    jobs, before = [], ""
    for name in names:
        inputs = {"model": [before]} if before else {}
        jobs.append({"id": name, "kind": "dpo", "key": name, "inputs": inputs})
        before = f"dpo/{name}"
    return {"jobs": jobs}


def test_what_is_left_follows_what_jobs_say_and_took() -> None:
    names = [f"eto.{number}.dpo" for number in (1, 2, 3)]
    estimates = {name: estimate(name, 100.0) for name in names}
    left = TimeLeft(chain(*names), estimates, 2)
    waiting = [JobSnapshot(id=name, state="waiting") for name in names]
    assert left(waiting) == 300.0
    assert left(waiting[1:]) == 300.0, "it looks again every two seconds"
    again = TimeLeft(chain(*names), estimates, 2)
    running = JobSnapshot(id=names[1], state="running", seconds=5.0, remaining=15.0)
    first = JobSnapshot(id=names[0], state="done", seconds=20.0)
    assert again([first, running, waiting[2]]) == 15.0 + 20.0, "a round like one that took 20 s"
    late = JobSnapshot(id=names[1], state="running", seconds=200.0)
    assert again.seconds([late])[names[1]] == 50.0
    assert TimeLeft(chain(*names), {}, 2)(waiting) is None


def test_the_live_view_says_what_is_left_of_the_whole() -> None:
    jobs = [BASE, *(cell(number, **RUNNING) for number in range(2)), cell(2, state="waiting")]
    stream = io.StringIO()
    console = Console(file=stream, width=110, height=30, force_terminal=False)
    plan = {
        "jobs": [{"id": job.id, "resources": {"cpus": 4}} for job in jobs],
        "sessions": [{"id": "serve", "members": [jobs[1].id]}],
    }
    cores = CoresInUse(plan, 16)
    view = LiveView("demo", console, left=lambda seen: 60.0 * len(seen), cores=cores)
    head = view._head(jobs)
    assert head.startswith("demo   1/4 jobs, 2 running   8 of 16 cores   ")
    assert CoresInUse(plan, 2)(jobs) == "2 of 2 cores"
    together = {**plan, "sessions": [{"id": "serve", "members": [job.id for job in jobs]}]}
    assert CoresInUse(together, 16)(jobs) == "4 of 16 cores", "one session"
    assert head.endswith("   about 4.0 min left")
    console.width = len(head) - 1
    assert view._head(jobs) == head.replace("   ", "  "), "narrower, before it is wrapped"
    console.width = 110
    console.print(view.table(fold_jobs(jobs)))
    lines = stream.getvalue().splitlines()
    assert [line.split()[:2] for line in lines] == [["✓", "base"], ["eto.1"], ["▸", "dpo@*"]]
    assert "0 of 3 done, 2 running (beta=0.1,seed=0: 40/100 steps" in lines[2]


def test_status_folds_a_sweep_and_shows_each_cell_when_asked(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.job("base")
    for seed in range(3):
        plan.job(f"sft@seed={seed}", kind="pair", inputs={"x": ["base"]}, seed=seed)
    names = [f"sft@seed={seed}" for seed in range(3)]
    plan.job("all", kind="compare", inputs={"x": names})
    plan.store.mkdir(exist_ok=True)
    layout, text = StoreLayout(plan.store), json.dumps(plan.document())
    record = Record(RunFolder.of(layout, "tiny"), find_work(plan.document(), layout), 1.0)
    record.open(text, plan.folder)
    assert main(["status", "--store", str(plan.store)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["sft@*", "0", "of", "3", "done,", "3", "not", "started"] in lines
    assert main(["status", "--all", "--store", str(plan.store)]) == 0
    shown = capsys.readouterr().out
    assert all(f"sft@seed={seed}" in shown for seed in range(3))
    assert "sft@*" not in shown
    assert main(["status", "--json", "--store", str(plan.store)]) == 0
    found = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert found == ["base", *names, "all"]
