"""`agentc why --full`: lineages of published objects, from manifests alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.cli import main
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import trace


@pytest.fixture
def made(plan: TinyPlan) -> TinyPlan:
    """base -> rows (on a server of base) -> tuned, which takes base a second time."""
    plan.job("base", "checkpoint.py", kind="model", produces="Checkpoint", seed=7)
    plan.job("rows", inputs={"model": ["base"]}, leases=[plan.lease()], rows=2)
    plan.job(
        "tuned", "checkpoint.py", kind="sft", produces="Checkpoint",
        inputs={"model": ["base"], "data": ["rows"]}, arguments={"seed": 3, "lr": 0.1},
    )  # fmt: skip
    for name in ("base", "rows", "tuned"):
        done = plan.run(name)
        assert done.returncode == 0, done.stderr
    runs = plan.store / "runs" / "tiny"
    runs.mkdir(parents=True)
    shutil.copy(plan.path, runs / "last-plan.json")
    return plan


def provenance(plan: TinyPlan, *words: str) -> int:
    return main(["why", "--full", *words, "--store", str(plan.store)])


def test_a_stage_with_all_that_it_was_made_from(
    made: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    assert provenance(made, "tuned") == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split("  ")[0] for line in lines if "/" in line and not line.startswith(" ")]
    assert heads[:3] == ["tuned", "rows", "base"]
    assert f"  model: base  {made.object('base')}" in lines
    assert f"  data: rows  {made.object('rows')}" in lines
    assert "  seeds: arguments.seed 3" in lines
    assert "  policy server: serve.tiny version 1" in lines
    assert lines[-1].startswith("in all 3 jobs: ")
    assert "(3 jobs)" in next(line for line in lines if "CPUs, " in line)


def test_json_holds_manifests_children_first(
    made: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    assert provenance(made, made.object("rows")[:16], "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["object"] == made.object("rows")
    assert [entry["id"] for entry in document["objects"]] == ["rows", "base"]
    rows, base = document["objects"]
    assert base["seeds"] == {"seed": 7}
    assert rows["inputs"] == {"model": [made.object("base")]}
    assert rows["files"] == made.manifest("rows")["files"]
    assert rows["software"]["imported"] == {}
    assert document["missing"] == []


def test_a_lineage_with_a_hole_says_so(made: TinyPlan, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(made.store / "objects" / made.object("base"))
    assert provenance(made, "tuned") == 0
    assert f"not in the store any more: {made.object('base')}" in capsys.readouterr().out


def test_manifests_of_the_first_release_are_read(
    made: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made.store / "objects" / made.object("base") / "artifact.json"
    manifest = json.loads(path.read_text())
    del manifest["agentc"], manifest["software"]["imported"], manifest["hardware"]["cores"]
    manifest["software"]["versions"] = {"torch": "2.13.0"}
    path.write_text(json.dumps(manifest))
    assert provenance(made, "base") == 0
    text = capsys.readouterr().out
    assert "(not recorded; all that is installed)\n    torch 2.13.0\n" in text
    assert "of ? CPUs" in text


def test_names_that_fit_nothing_or_too_much(
    made: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    assert provenance(made, "tunde") == 5
    assert "did you mean `tuned`?" in capsys.readouterr().err
    assert provenance(made, "model/00000000") == 5
    assert provenance(made, "tuned", "--run", "tiyn") == 5
    assert "did you mean `tiny`?" in capsys.readouterr().err
    shutil.rmtree(made.store / "objects" / made.object("tuned"))
    assert provenance(made, "tuned") == 5
    assert "has no result yet" in capsys.readouterr().err


def test_a_manifest_that_cannot_be_read_is_damage(
    made: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    (made.store / "objects" / made.object("tuned") / "artifact.json").write_text("{")
    assert provenance(made, "tuned") == 4
    assert "damaged" in capsys.readouterr().err


def test_a_chain_longer_than_the_stack(tmp_path: Path) -> None:
    count = 3000
    for number in range(count):
        folder = tmp_path / "objects" / "sft" / f"{number:032x}"
        folder.mkdir(parents=True)
        inputs = {"model": [f"sft/{number - 1:032x}"]} if number else {}
        (folder / "artifact.json").write_text(json.dumps({"inputs": inputs, "files": {}}))
    found = trace(StoreLayout(tmp_path), f"sft/{count - 1:032x}")
    assert len(found.objects) == count
    assert found.objects[-1].name == f"sft/{0:032x}"
