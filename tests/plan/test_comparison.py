"""`agentc diff`: specs and runs side by side, and what has no effect on results apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.drafted import changed
from toy_plan import job, plan

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.plan.comparison import Comparison, compare_documents, comparison_text
from agentc.plan.job import Job, Plan, Resources
from agentc.plan.render import plan_document, render_plan
from agentc.plan.review import review_plan
from agentc.plan.tree import plan_text
from agentc.plan.work import find_work
from agentc.run.record import Record
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder

SPEC = Path(__file__).parent / "rounds.yaml"


def compared(before: Plan, after: Plan) -> Comparison:
    return compare_documents(plan_document(before), plan_document(after), ("one", "other"))


def sft_and_dpo(beta: float = 0.1, gpus: int = 0, **placement: Any) -> Plan:
    return plan(
        job("sft", "sft", settings={"lr": 1}, placement=placement),
        job("dpo", "dpo", model=["sft"], settings={"beta": beta}, resources=Resources(gpus=gpus)),
        job("scores", "evaluate", served="dpo"),
    )


def test_the_same() -> None:
    found = compared(sft_and_dpo(), sft_and_dpo())
    assert found.same
    assert comparison_text(found) == "one and other: the same 3 jobs, the same results\n"


def test_a_cause_and_what_follows() -> None:
    found = compared(sft_and_dpo(), sft_and_dpo(beta=0.5))
    assert not found.same
    assert comparison_text(found).splitlines() == [
        "one and other: 2 of 3 jobs differ",
        "~ dpo",
        "    beta: 0.1 -> 0.5",
        "scores follows from dpo",
    ]


def swept(*betas: float) -> Plan:
    """A DPO and its scores in as many cells."""
    jobs = [job("sft", "sft", settings={"lr": 1})]
    for seed, beta in enumerate(betas):
        made = f"dpo@seed={seed}"
        jobs += [
            job(made, "dpo", model=["sft"], settings={"beta": beta, "seed": seed}),
            job(f"scores@seed={seed}", "evaluate", served=made),
        ]
    return plan(*jobs)


def test_cells_of_a_sweep_that_differ_alike_are_one_line() -> None:
    text = comparison_text(compared(swept(0.1, 0.1, 0.1), swept(0.5, 0.5, 0.5)))
    assert text.splitlines()[1:] == [
        "~ dpo@*",
        "    beta: 0.1 -> 0.5",
        "scores@* follows from dpo@*",
    ]
    text = comparison_text(compared(swept(0.1, 0.1, 0.1), swept(0.5, 0.1, 0.1)))
    assert text.splitlines()[1:] == [
        "~ dpo@seed=0",
        "    beta: 0.1 -> 0.5",
        "scores@seed=0 follows from dpo@seed=0",
    ]


def test_placement_is_without_effect() -> None:
    found = compared(sft_and_dpo(), sft_and_dpo(gpus=4, concurrency=8))
    assert found.same
    assert comparison_text(found).splitlines()[1:] == [
        "without effect on results:",
        "  placement.concurrency: default -> 8 (sft)",
        "  resources.gpus: 0 -> 4 (dpo)",
    ]


def test_equal_changes_share_their_lines() -> None:
    names = [f"job{n}" for n in range(30)]
    old = plan(*(job(name, settings={"lr": 1, "name": name}) for name in names))
    new = plan(*(job(name, settings={"lr": 2, "name": name}) for name in names))
    text = comparison_text(compared(old, new))
    assert text.count("lr: 1 -> 2") == 1
    assert "and 18 more" in text


def test_many_different_changes_are_cut() -> None:
    names = [f"job{n}" for n in range(200)]
    old = plan(*(job(name, settings={"lr": n}) for n, name in enumerate(names)))
    new = plan(*(job(name, settings={"lr": 1000 + n}) for n, name in enumerate(names)))
    lines = comparison_text(compared(old, new)).splitlines()
    assert len(lines) < 50
    assert lines[-1] == "and 180 more jobs changed themselves; --json names them"


def test_a_report_is_no_result() -> None:
    def with_page(text: str) -> Plan:
        page = job("page", "report", a=["sft"], settings={"text": text})
        made = plan(job("sft", "sft"), page)
        jobs = [one if one.id == "sft" else _report(one) for one in made.jobs]
        return plan(*jobs)

    assert compared(with_page("a"), with_page("b")).same


def test_jobs_are_counted_as_plan_counts_them(tmp_path: Path) -> None:
    def with_page(beta: float) -> Plan:
        made = plan(
            job("dpo", "dpo", settings={"beta": beta}),
            job("scores", "evaluate", served="dpo"),
            job("page", "report", a=["scores"]),
        )
        return plan(*(_report(one) if one.id == "page" else one for one in made.jobs))

    old, new = with_page(0.1), with_page(0.5)
    text = comparison_text(compared(old, new))
    assert text.splitlines()[0] == "one and other: 3 of 3 jobs differ"
    review = review_plan(find_work(plan_document(new), StoreLayout(tmp_path)), plan_document(old))
    assert "1 changed, 2 follow from that" in plan_text(review)


def _report(one: Job) -> Job:
    return changed(one, produces="Report")


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_two_specs_each_with_its_own_params(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "diff", SPEC, SPEC, "-p", "seed=1")
    assert code == 1
    assert "params: seed: 0 -> 1" in out
    code, out, _ = run(capsys, "diff", SPEC, "-p", "seed=1", SPEC, "-p", "seed=1")
    assert code == 0
    assert run(capsys, "diff", "-p", "seed=1", SPEC, SPEC)[0] == 0
    code, out, _ = run(capsys, "diff", SPEC, "-p", "rounds=3", SPEC, "-p", "rounds=2", "--json")
    document = json.loads(out)
    assert code == 1
    gone = {entry["id"] for entry in document["jobs"] if entry["novelty"] == "gone"}
    assert "eto.3.dpo" in gone


def test_a_spec_and_its_last_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layout, store = StoreLayout(tmp_path), ("--store", tmp_path)
    compiled = compile_spec(SPEC, {"seed": "1"}, load_backends())
    assert compiled.plan is not None
    work = find_work(plan_document(compiled.plan), layout)
    record = Record(RunFolder.of_plan(layout, work.document), work, began=1.7e9)
    record.open(render_plan(compiled.plan), tmp_path)
    record.close(0, [])
    code, out, _ = run(capsys, "diff", SPEC, *store)
    assert (code, "params: seed: 1 -> 0" in out) == (1, True), out
    assert out.startswith(f"the last run (rounds@seed=1) and {SPEC}: ")
    assert run(capsys, "diff", SPEC, "-p", "seed=1", *store)[0] == 0


def test_runs_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layout = StoreLayout(tmp_path)
    for beta in (0.1, 0.5, 0.1):
        made = sft_and_dpo(beta)
        work = find_work(plan_document(made), layout)
        record = Record(RunFolder.of(layout, made.name), work, began=1.7e9)
        record.open(render_plan(made), tmp_path)
        record.close(0, [])
    store = ("--store", tmp_path)
    code, out, _ = run(capsys, "diff", "toy@1", "toy@2", *store)
    assert code == 1
    assert "beta: 0.1 -> 0.5" in out
    assert run(capsys, "diff", "toy@1", "toy", *store)[0] == 0
    assert len(list((tmp_path / "runs/toy/plans").iterdir())) == 2, "equal plans are kept once"
    code, _, err = run(capsys, "diff", "toy@4", "toy", *store)
    assert code == 5
    assert "toy@3" in err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("tox", "toy"), 5, "no run of `tox`"),
        (("missing.yaml", str(SPEC)), 2, "missing.yaml"),
        ((str(SPEC),), 5, "no run of `rounds`"),
        (("toy",), 2, "toy is a run"),
        ((), 2, "required: A"),
        ((str(SPEC), str(SPEC), "-p", "seed"), 2, "NAME=VALUE"),
        ((str(SPEC), str(SPEC), "-p", "sead=1"), 2, "did you mean `seed`"),
        ((str(SPEC), "toy", "-p", "seed=1"), 2, "toy is a run"),
    ],
)
def test_what_cannot_be_compared(
    words: tuple[str, ...],
    code: int,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, _, err = run(capsys, "diff", "--store", tmp_path, *words)
    assert (found, text in err) == (code, True), err


def test_two_sides_of_one_spec_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["diff", str(SPEC), str(SPEC), "-p", "seed=1", "--store", str(tmp_path)]
    assert main(words) == 1
    assert f"{SPEC} and {SPEC} (seed=1): " in capsys.readouterr().out
