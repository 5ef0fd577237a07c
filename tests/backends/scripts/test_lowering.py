"""What enters the key of a script, and what its job is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main

SPEC = """\
agentc: 1
name: own
environments: {textcraft: {backend: textcraft}}
stages:
  expert: {kind: expert, split: train, limit: 4}
  own:
    kind: script
    inputs: {episodes: expert}
"""
RUN = "run: scripts/own.py; output: trajectories"
LOCK = (
    "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spec's folder with a script, a module beside it, and a lock."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "own.py").write_text("print(1)\n")
    (scripts / "beside.py").write_text("X = 1\n")
    (tmp_path / "six.lock").write_text(LOCK)
    return tmp_path


def jobs(folder: Path, settings: str, *words: str) -> dict[str, dict[str, Any]]:
    spec = folder / "own.yaml"
    spec.write_text(SPEC + "".join(f"    {line}\n" for line in settings.split("; ")))
    out = folder / "plan"
    assert main(["bundle", "--bare", str(spec), "-o", str(out), *words]) == 0
    document = json.loads((out / "plan.json").read_text("utf-8"))
    return {job["id"]: job for job in document["jobs"]}


def key(folder: Path, settings: str) -> str:
    return str(jobs(folder, settings)["own"]["key"])


def test_files_change_the_key_where_they_are_declared(folder: Path) -> None:
    plain = key(folder, RUN)
    assert key(folder, f"{RUN}; placement: {{cpus: 2}}") == plain
    others = [key(folder, f"{RUN}; sources: [scripts/beside.py]")]
    beside = folder / "scripts" / "beside.py"
    beside.write_text("X = 2\n")
    assert key(folder, RUN) == plain  # nobody declares it
    others.append(key(folder, f"{RUN}; sources: [scripts/beside.py]"))
    (folder / "scripts" / "own.py").write_text("print(2)\n")
    others.append(key(folder, RUN))
    (folder / "scripts" / "own.py").write_text("print(1)\n")
    assert key(folder, RUN) == plain
    assert len({plain, *others}) == len(others) + 1


def test_the_texts_stand_in_the_plan(folder: Path) -> None:
    told = jobs(folder, f"{RUN}; sources: [./scripts/beside.py]")["own"]["config"]
    assert told["files"] == [
        {"path": "scripts/own.py", "text": "print(1)\n"},
        {"path": "scripts/beside.py", "text": "X = 1\n"},
    ]


def test_files_from_elsewhere_stay_inside(folder: Path) -> None:
    (folder / "spec").mkdir()
    allowed = ("--allow-path", str(folder / "scripts"))
    up = jobs(folder / "spec", "run: ../scripts/own.py; output: folder", *allowed)
    assert [file["path"] for file in up["own"]["config"]["files"]] == ["up/scripts/own.py"]
    there = folder / "scripts" / "own.py"
    away = jobs(folder / "spec", f"run: {there}; output: folder", *allowed)
    assert away["own"]["config"]["files"][0]["path"] == f"root{there}"


def test_its_own_software(folder: Path) -> None:
    made = jobs(folder, f"{RUN}; requirements: six.lock")
    assert made["own"]["software"] == "script-six"
    assert (folder / "plan" / "software" / "script-six.txt").read_text() == LOCK


def test_metrics_are_made_of_scores_by_a_second_job(folder: Path) -> None:
    made = jobs(folder, "run: scripts/own.py; output: metrics; range: [0, 2]")
    assert made["own:scores"]["produces"] == "TaskScores"
    assert made["own"]["produces"] == "Metrics"
    assert made["own"]["inputs"] == {"scores": [f"script/{made['own:scores']['key']}"]}
    assert made["own"]["config"] == {"confidence": 0.95, "name": "own", "range": [0, 2]}
    assert made["own"]["software"] == "light"
    wider = jobs(folder, "run: scripts/own.py; output: metrics; range: [0, 2]; confidence: 0.9")
    assert wider["own:scores"]["key"] == made["own:scores"]["key"]
    assert wider["own"]["key"] != made["own"]["key"]


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ("output: folder", "AGC603", "script.run needs a program"),
        ("run: scripts/own.py", "AGC202", "needs `output`"),
        ("run: scripts; output: folder", "AGC603", "no readable file scripts"),
        ("run: ../own.py; output: folder", "AGC123", "outside of the spec's folder"),
        (f"{RUN}; sources: [../x.py]", "AGC123", "outside of the spec's folder"),
        (f"{RUN}; command: [ls]", "AGC603", "`run` says already what is started"),
        (f"{RUN}; range: [0, 2]", "AGC602", "only `output: metrics` has scores"),
        ("run: scripts/own.py; output: metrics; range: [2, 0]", "AGC603", "no range of scores"),
        (f"{RUN}; requirements: none.lock", "AGC603", "no readable lock none.lock"),
        (f"{RUN}; requirements: scripts/beside.py", "AGC675", "has no hash for x"),
        ('run: scripts/own.py; output: "{{ 1 }}"', "AGC203", "cannot be an expression"),
    ],
)
def test_what_is_refused(
    folder: Path, settings: str, code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = folder / "own.yaml"
    spec.write_text(SPEC + "".join(f"    {line}\n" for line in settings.split("; ")))
    main(["check", "--format", "json", str(spec)])
    found = json.loads(capsys.readouterr().out)["diagnostics"]
    assert [(one["code"], said in one["message"]) for one in found] == [(code, True)]
