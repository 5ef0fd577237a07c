"""`agentc report`: the path of a finished run's report, and a partial one before that."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main

LOCK = "jinja2==3\n"


@pytest.fixture
def run_folder(
    example_store: Any, experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A store that holds a run of the example whose report is still to come. Its software
    environment is this interpreter, so that nothing is installed."""
    digest = hashlib.sha256(LOCK.encode()).hexdigest()
    environment = tmp_path / "environments" / digest[:16]
    (environment / "bin").mkdir(parents=True)
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    complete = {"lock": digest, "python": "3", "versions": {}}
    (environment / "complete.json").write_text(json.dumps(complete), encoding="utf-8")
    monkeypatch.setenv("AGENTC_ENVIRONMENTS", str(tmp_path / "environments"))
    monkeypatch.setenv("AGENTC_STORE", str(example_store.root))

    jobs = []
    inputs = {}
    for stage, [data] in example_store.inputs.items():
        manifest = json.loads((data.parent / "artifact.json").read_text("utf-8"))
        jobs.append({name: manifest[name] for name in ("id", "kind", "key", "inputs")})
        inputs[stage] = [f"{manifest['kind']}/{manifest['key']}"]
    inputs = {**inputs, "later": [f"dpo/{'9' * 32}"]}
    jobs.append({"id": "later", "kind": "dpo", "key": "9" * 32, "inputs": {}})
    jobs.append(
        {
            "id": "report",
            "kind": "report",
            "key": "8" * 32,
            "inputs": inputs,
            "environment": "light",
            "program": ["-m", "agentc_backends.results.report.job_report"],
            "config": {
                "experiment": experiment,
                "stages": list(inputs),
                "trajectories": 5,
                "missing": [],
            },
            "placement": {},
            "contract": {},
        }
    )
    names = {f"{job['kind']}/{job['key']}" for job in jobs}
    for job in jobs:  # the inner rollouts of evaluations are no jobs of this small plan
        job["inputs"] = {
            role: [one for one in ones if one in names] for role, ones in job["inputs"].items()
        }
        job["leases"] = []
    plan = {
        "plan": 1,
        "name": "quickstart",
        "jobs": jobs,
        "targets": [f"report/{'8' * 32}"],
        "environments": {"light": {"lock": digest, "file": "environments/light.txt"}},
    }
    plans = tmp_path / "plans" / "quickstart"
    (plans / "environments").mkdir(parents=True)
    (plans / "environments" / "light.txt").write_text(LOCK, encoding="utf-8")
    (plans / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    folder: Path = example_store.root / "runs" / "quickstart"
    folder.mkdir(parents=True)
    (folder / "last-plan.json").write_text(json.dumps(plan), encoding="utf-8")
    state = {"plan": str(plans / "plan.json")}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    return folder


def test_an_unfinished_run_gives_a_partial_report(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report"]) == 0
    printed = capsys.readouterr()
    page = Path(printed.out.strip())
    assert "1 of" in page.read_text("utf-8")
    assert "later" in page.read_text("utf-8")
    assert "is not finished" in printed.err
    assert "evaluate_sft" in page.read_text("utf-8")


def test_a_finished_run_gives_the_path_of_its_report(
    run_folder: Path, example_store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    home = example_store.root / "objects" / "report" / ("8" * 32)
    (home / "data").mkdir(parents=True)
    (home / "data" / "index.html").write_text("<!doctype html>", encoding="utf-8")
    (home / "artifact.json").write_text("{}", encoding="utf-8")
    assert main(["report", "quickstart"]) == 0
    assert capsys.readouterr().out.strip() == str(home / "data" / "index.html")


def test_an_unknown_name_is_answered_with_the_nearest(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "quikstart"]) == 5
    assert "did you mean `quickstart`" in capsys.readouterr().err


def test_a_store_without_runs_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTC_STORE", raising=False)
    assert main(["report", "--store", str(tmp_path / "none")]) == 5
    assert "nothing was run" in capsys.readouterr().err


def test_a_broken_report_program_is_reported_with_what_it_said(
    run_folder: Path, example_store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    [data] = example_store.inputs["evaluate_sft"]
    (data / "metrics.json").unlink()
    assert main(["report"]) == 3
    assert "metrics.json" in capsys.readouterr().err
