"""Scripts of one's own between stages: run, edited, wrong, bundled; with no model, so that it is
quick, and once with one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from smoke import agentc, require_software, starts

pytestmark = pytest.mark.slow

SPEC = """\
agentc: 1
name: own
environments: {textcraft: {backend: textcraft, max_expert_steps: 4}}
stages:
  expert: {kind: expert, split: train, limit: 24}
  filter:
    kind: script
    run: keep_good.py
    inputs: {episodes: expert}
    output: trajectories
    params: {most_turns: 3}
  all: {kind: script, run: brevity.py, inputs: {episodes: expert}, output: metrics}
  kept: {kind: script, run: brevity.py, inputs: {episodes: filter}, output: metrics}
claims:
  short: {what: what is kept is short, stage: kept, above: 0.3, gate: true}
"""


@pytest.fixture
def spec(tmp_path: Path, repository: Path) -> Path:
    """A spec beside the scripts of the one that is shipped."""
    for script in (repository / "specs" / "scripts").glob("*.py"):
        shutil.copy(script, tmp_path)
    (tmp_path / "own.yaml").write_text(SPEC, encoding="utf-8")
    return tmp_path / "own.yaml"


def failing(*words: str | Path) -> str:
    """What a command says that fails."""
    argv = [str(Path(sys.executable).with_name("agentc")), *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode != 0
    return done.stdout + done.stderr


def made(store: Path, kind: str) -> list[Path]:
    return [path.parent for path in sorted((store / "objects" / kind).glob("*/artifact.json"))]


def test_a_script_is_a_stage_like_others(spec: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    said = agentc("run", spec, "--store", store, "--plain")
    assert "supported" in said
    rows = [
        [json.loads(line) for line in (folder / "data" / "trajectories.jsonl").open()]
        for kind in ("expert", "script")
        for folder in made(store, kind)
        if (folder / "data" / "trajectories.jsonl").exists()
    ]
    assert rows[1] == [row for row in rows[0] if row["turns"] <= 3]
    assert 0 < len(rows[1]) < len(rows[0])

    # Its text is kept with what it made.
    manifests = [json.loads((f / "artifact.json").read_text()) for f in made(store, "script")]
    texts = {file["text"] for each in manifests for file in each["config"].get("files", ())}
    assert texts == {path.read_text() for path in tmp_path.glob("*.py")}

    # An edit: it and what follows from it.
    script = tmp_path / "keep_good.py"
    before = starts(store)
    script.write_text(script.read_text() + "# another script\n")
    assert "keep_good.py changed" in agentc("why", spec, "filter", "--store", store)
    plan = json.loads(agentc("plan", spec, "--store", store, "--json"))
    again = {job["id"] for job in plan["jobs"] if job["state"] == "run"}
    assert again == {"filter", "kept:scores", "kept", "claims", "report"}

    # A wrong row: it is named, and nothing is published.
    script.write_text(
        script.read_text().replace("json.dumps(row,", "json.dumps({'id': row['id']},")
    )
    said = failing("run", spec, "--store", store, "--plain")
    assert "trajectories.jsonl row 1, field end: null is not one of" in said
    assert starts(store) == before

    # A script that fails: the end of what it said.
    script.write_text("raise SystemExit('no such luck')\n")
    said = failing("run", spec, "--store", store, "--plain")
    assert "no such luck" in said
    assert "keep_good.py ended with exit status 1" in said


def test_a_bundle_holds_the_script(spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    agentc("bundle", spec, "-o", out)
    assert (out / "keep_good.py").read_text() == (tmp_path / "keep_good.py").read_text()
    (out / "keep_good.py").unlink()  # the plan has its text
    plan = json.loads((out / "plan.json").read_text())
    told = next(job["config"] for job in plan["jobs"] if job["id"] == "filter")
    assert told["files"][0]["text"] == (tmp_path / "keep_good.py").read_text()


@pytest.mark.long
def test_between_two_trainings(repository: Path, tmp_path: Path) -> None:
    require_software("trl.sft")
    folder = shutil.copytree(repository / "specs" / "scripts", tmp_path / "spec")
    spec, store = folder / "filter.yaml", tmp_path / "store"
    said = agentc("run", spec, "--store", store, "--plain", "-p", "tasks=6")
    assert "brevity_after" in said
    trained = [json.loads((f / "artifact.json").read_text()) for f in made(store, "sft")]
    assert any(name.startswith("script/") for each in trained for name in each["inputs"]["data"])
