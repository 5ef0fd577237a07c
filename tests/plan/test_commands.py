"""`plan`, `compile`, `why` and `explain` on a small spec, over stores in several states."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.plan.job import Plan
from agentc.plan.render import render_plan


@pytest.fixture
def spec() -> Path:
    return Path(__file__).parent / "rounds.yaml"


def plan_of(spec: Path, **params: str) -> Plan:
    plan = compile_spec(spec, params, load_backends()).plan
    assert plan is not None
    return plan


def edited(spec: Path, folder: Path, old: str, new: str) -> Path:
    """The spec with one piece of text changed, under its own name."""
    text = spec.read_text(encoding="utf-8")
    assert text.count(old) == 1
    folder.mkdir(exist_ok=True)
    copy = folder / spec.name
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return copy


def publish(store: Path, plan: Plan, *ids: str) -> None:
    """Objects as a run would leave them, as far as these commands look."""
    for job in plan.jobs:
        if not ids or job.id in ids:
            folder = store / "objects" / job.object
            folder.mkdir(parents=True, exist_ok=True)
            manifest = {"id": job.id, "files": {}, "started": 1.7e9, "wall_s": 3.0}
            (folder / "artifact.json").write_text(json.dumps(manifest))


def leave_plan(store: Path, plan: Plan, name: str = "last-plan.json") -> None:
    path = store / "runs" / plan.name / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_plan(plan), encoding="utf-8")


def run(*words: str | Path) -> int:
    return main([str(word) for word in words])


def test_plan_with_an_empty_store(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", spec, "--store", tmp_path / "store") == 0
    shown = capsys.readouterr().out
    jobs = plan_of(spec).jobs
    assert f"{len(jobs)} jobs: {len(jobs)} to run" in shown
    assert "eto, round 2" in shown
    assert "saved by sharing" in shown
    for job in jobs:
        assert f"{job.id} " in shown
        assert job.key[:8] in shown
    assert not (tmp_path / "store").exists(), "planning leaves no trace"


def test_beta_of_round_2_reruns_only_what_follows_it(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, before = tmp_path / "store", plan_of(spec)
    publish(store, before)
    leave_plan(store, before)
    changed = edited(spec, tmp_path / "edited", "else 0.5 }}", "else 0.4 }}")
    assert run("plan", changed, "--store", store, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    again = [job["id"] for job in document["jobs"] if job["state"] == "run"]
    assert again == [
        "eto.2.dpo",
        "eto.2.evaluate:rollout",
        "eto.2.evaluate",
        "results",
        "report",
    ]
    by_id = {job["id"]: job for job in document["jobs"]}
    assert by_id["eto.2.dpo"]["changes"] == [{"path": "settings.beta", "before": 0.5, "after": 0.4}]
    assert all(by_id[name]["because_of"] == ["eto.2.dpo"] for name in again)

    assert run("plan", changed, "--store", store) == 0
    text = capsys.readouterr().out
    assert "beta: 0.5 -> 0.4   (4 other jobs because of it)" in text
    assert "because of eto.2.dpo" in text
    assert f"5 to run, {len(before.jobs) - 5} in the store" in text
    assert "1 changed, 4 follow from that" in text


def test_another_round_runs_only_that_round(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, before = tmp_path / "store", plan_of(spec)
    publish(store, before)
    assert run("plan", spec, "-p", "rounds=3", "--store", store, "--format", "json") == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    stages = {job["stage"] for job in jobs if job["state"] == "run"}
    assert stages == {
        *(f"eto.3.{name}" for name in ("explore", "pairs", "dpo", "evaluate")),
        "results",
        "report",
    }


def test_a_plan_and_its_cost_agree(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 0.0, 0.0))
    totals = []
    for words in (("plan",), ("plan", "--cost")):
        for on in ((), ("--on", "8xa100-80gb"), ("--on", "slurm", "-j", "3")):
            assert run(*words, spec, "--store", tmp_path, "--format", "json", *on) == 0
            found = json.loads(capsys.readouterr().out)
            totals.append(found["estimate" if words == ("plan",) else "total"])
    assert totals[:3] == totals[3:]
    assert [total["on"] for total in totals[:3]] == ["here", "8 x a100-80gb", "slurm"]
    assert totals[0]["wall_at_load_s"] > 2 * totals[0]["wall_s"][1]
    assert totals[1]["wall_at_load_s"] == totals[1]["wall_s"][1]
    assert totals[2]["cores"] == 3


def test_plan_of_a_broken_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("agentc: 1\nname: broken\nstages:\n  sft: {kind: sft}\n")
    assert run("plan", broken) == 1
    shown = capsys.readouterr()
    assert "error[AGC" in shown.err
    assert shown.out == ""


def test_compile_writes_a_directory(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "compiled"
    assert run("bundle", "--bare", spec, "-o", out) == 0
    assert (out / "plan.json").read_text() == render_plan(plan_of(spec))
    assert (out / spec.name).read_text() == spec.read_text()
    assert f"cd {out} && snakemake" in capsys.readouterr().out


def test_compile_until_a_stage(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "compiled"
    assert run("bundle", "--bare", spec, "-o", out, "--until", "sft") == 0
    compiled = json.loads((out / "plan.json").read_text())
    whole = plan_of(spec)
    assert compiled["targets"] == [whole.by_id()["sft"].object]
    assert [job["id"] for job in compiled["jobs"]] == [job.id for job in whole.jobs]
    assert "`sft` and what it needs" in capsys.readouterr().out
    assert run("bundle", "--bare", spec, "-o", out, "--until", "eto.dpo") == 0
    assert len(json.loads((out / "plan.json").read_text())["targets"]) == 2
    assert run("bundle", "--bare", spec, "-o", tmp_path / "none", "--until", "stf") == 5
    assert "did you mean `sft`" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_compile_into_something_else(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run("bundle", "--bare", spec, "-o", tmp_path / "file") == 2
    assert "cannot write" in capsys.readouterr().err


def test_why_a_job_ran(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, before = tmp_path / "store", plan_of(spec)
    after = plan_of(edited(spec, tmp_path / "edited", "epochs: 8", "epochs: 9"))
    publish(store, after)
    leave_plan(store, before, "previous-plan.json")
    leave_plan(store, after)

    def answer(name: str) -> str:
        assert run("why", name, "--store", store) == 0
        return capsys.readouterr().out

    assert "epochs: 8 -> 9" in answer("sft")
    assert "nothing that enters its key changed" in answer("expert")
    behind = answer("eto.2.pairs")
    assert "its key changed" in behind
    assert "because of sft (epochs: 8" in behind
    assert answer("eto").count("its key changed") == 10, "two rounds of five jobs"


def test_why_a_job_would_run(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, before = tmp_path / "store", plan_of(spec)
    publish(store, before)
    leave_plan(store, before)
    changed = edited(spec, tmp_path / "edited", "epochs: 8", "epochs: 9")

    def answer(*words: str | Path) -> str:
        assert run("why", *words, "--store", store) == 0
        return capsys.readouterr().out

    assert "to run: its key changed since the last run\n  epochs: 8 -> 9" in answer(changed, "sft")
    assert "because of sft (epochs: 8 -> 9)" in answer("results", changed)
    assert "nothing that enters its key changed" in answer(spec, "sft")
    assert "seed: 0 (default) -> 1" in answer(spec, "sft", "-p", "seed=1")
    # A run of the edited spec that failed at once: the reason is still the edit.
    leave_plan(store, before, "previous-plan.json")
    leave_plan(store, plan_of(changed))
    said = answer(changed, "sft")
    assert "changed since the run before the last\n  epochs: 8 -> 9" in said


def test_why_needs_one_job(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("why", spec) == 2
    assert "agentc plan SPEC" in capsys.readouterr().err
    assert run("why", spec, spec, "sft") == 2


def test_plan_until_a_stage(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("plan", spec, "--store", tmp_path, "--until")
    assert run(*words, "sft", "--json") == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    assert {job["id"] for job in jobs} == {"base", "expert", "sft"}
    assert run(*words, "stf") == 5
    assert "did you mean `sft`" in capsys.readouterr().err


def test_why_of_a_first_run(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, plan = tmp_path / "store", plan_of(spec)
    leave_plan(store, plan)
    assert run("why", "sft", "--store", store) == 0
    shown = capsys.readouterr().out
    assert "no earlier run" in shown
    assert "to run" in shown


def test_why_of_a_result_that_another_experiment_made(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan = tmp_path / "store", plan_of(spec)
    publish(store, plan)
    leave_plan(store, plan)
    path = store / "objects" / plan.by_id()["sft"].object / "artifact.json"
    path.write_text(path.read_text().replace('"sft"', '"cloning"'))
    assert run("why", "sft", "--store", store) == 0
    assert "as `cloning`" in capsys.readouterr().out


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_an_earlier_plan_that_is_cut_off_is_none(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float
) -> None:
    """A machine that stopped while the plan was written, or a full disk."""
    store, plan = tmp_path / "store", plan_of(spec)

    def cut_off(name: str) -> None:
        leave_plan(store, plan, name)
        path = store / "runs" / plan.name / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: int(len(text) * share)], encoding="utf-8")

    cut_off("last-plan.json")
    assert run("plan", spec, "--store", store) == 0
    assert "since the last run" not in capsys.readouterr().out
    assert run("why", spec, "sft", "--store", store) == 0
    assert "there is no earlier run" in capsys.readouterr().out
    assert run("why", "sft", "--store", store) == 5
    assert "last-plan.json cannot be read" in capsys.readouterr().err
    leave_plan(store, plan)
    cut_off("previous-plan.json")
    assert run("why", spec, "sft", "--store", store) == 0
    assert "unchanged, not finished yet since the last run" in capsys.readouterr().out
    assert run("why", "sft", "--store", store) == 0
    assert "there is no earlier run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("why", "sft"), "nothing was run"),
        (("why", "sft", "--run", "other"), "`other` was not run"),
        (("explain", "AGC999"), "there is no code AGC999"),
    ],
)
def test_named_things_that_are_not_there(
    words: tuple[str, ...], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ("--store", tmp_path / "store") if words[0] == "why" else ()
    assert run(*words, *store) == 5
    assert text in capsys.readouterr().err


def test_unknown_job_and_stage(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_plan(tmp_path, plan_of(spec))
    assert run("why", "stf", "--store", tmp_path) == 5
    assert "did you mean `sft`" in capsys.readouterr().err
    assert run("explain", "stf", spec) == 5
    assert "did you mean `sft`" in capsys.readouterr().err


def test_explain_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "agc602") == 0
    assert "AGC602: a setting without effect" in capsys.readouterr().out


def test_explain_a_stage(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "eto.2.dpo", spec) == 0
    rows: dict[str, Any] = {}
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("    ") and len(line.split()) > 2:
            rows[line.split()[0]] = line.split(None, 2)[1:]
    assert rows["beta"][0] == "0.5"
    assert "rounds.yaml:" in rows["beta"][1]
    assert rows["label_smoothing"] == ["0.0", "default"]
    assert rows["processes"] == ["1", "default (placement)"]


def test_explain_a_stage_of_every_round(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "eto.dpo", spec) == 0
    shown = capsys.readouterr().out
    assert "eto.1.dpo:" in shown
    assert "eto.2.dpo:" in shown


def test_a_stage_is_explained_with_its_spec(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", str(spec)) == 0
    assert f"agentc explain STAGE {spec}" in capsys.readouterr().out
    assert run("explain", "xqzzy") == 5
    assert "agentc explain STAGE SPEC" in capsys.readouterr().err


@pytest.fixture
def swept(spec: Path, tmp_path: Path) -> Path:
    """The spec with a matrix of two seeds."""
    return edited(
        spec, tmp_path / "swept", "environments:\n", "matrix: {seed: [0, 1]}\nenvironments:\n"
    )


def test_stages_of_a_matrix_need_no_cell(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    assert run("plan", swept, "--until", "sft", "--store", store, "--json") == 0
    jobs = {job["id"] for job in json.loads(capsys.readouterr().out)["jobs"]}
    assert {"sft@seed=0", "sft@seed=1"} <= jobs
    assert run("why", swept, "eto.dpo", "--store", store) == 0
    told = capsys.readouterr().out
    assert all(f"eto.{n}.dpo@seed={seed} (" in told for n in (1, 2) for seed in (0, 1))
    assert run("explain", "sft", swept) == 0
    told = capsys.readouterr().out
    assert "sft@seed=0: " in told
    assert "\nsft@seed=1: as sft@seed=0, except seed 1\n" in told
    assert told.count("max_length") == 1


def test_provenance_asks_which_of_several_is_meant(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_plan(tmp_path, plan_of(swept))
    assert run("why", "--full", "sft", "--store", tmp_path) == 5
    assert "name one: `sft@seed=0`, `sft@seed=1`" in capsys.readouterr().err
    assert run("why", "--full", "evaluate_sft@seed=0", "--store", tmp_path) == 5
    assert "evaluate_sft@seed=0 (evaluate/" in capsys.readouterr().err, "the metrics, not episodes"


@pytest.mark.parametrize("verb", ["explain", "why"])
def test_spec_and_stage_in_either_order(
    verb: str, spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ("--store", tmp_path) if verb == "why" else ()
    assert run(verb, "sft", spec, *store) == 0
    told = capsys.readouterr().out
    assert run(verb, spec, "sft", *store) == 0
    assert capsys.readouterr().out == told
    assert run(verb, spec, *store) == (0 if verb == "explain" else 2), "explain: the spec"
    shown = capsys.readouterr()
    assert "STAGE" in (shown.out if verb == "explain" else shown.err) or verb == "why"
