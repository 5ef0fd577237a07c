"""The compiled directory: what is in it, and that writing it again destroys nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from toy_plan import job, plan

from agentc import resources
from agentc.emit import compile_to
from agentc.plan.render import plan_document, render_plan

MADE = plan(
    job("base", "model"),
    job("scores", "evaluate", served="base"),
    job("explore", "rollout", served="base"),
)


def test_files(tmp_path: Path) -> None:
    written = compile_to(tmp_path, MADE, "agentc: 1\n")
    names = {path.relative_to(tmp_path).as_posix() for path in written}
    assert names == {
        "plan.json",
        "Snakefile",
        "config.yaml",
        "toy.yaml",
        "software/empty.txt",
        "profiles/default/config.yaml",
    }
    assert written[-1].name == "plan.json"
    assert (tmp_path / "plan.json").read_text() == render_plan(MADE)
    assert (tmp_path / "Snakefile").read_text() == resources.snakefile().read_text()
    assert (tmp_path / "software/empty.txt").read_text() == MADE.software["empty"].lock
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == sorted(written)


def test_the_plan_names_objects_and_no_paths(tmp_path: Path) -> None:
    compile_to(tmp_path, MADE)
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document == json.loads(json.dumps(plan_document(MADE)))
    base, scores, _ = document["jobs"]
    assert scores["inputs"] == {"model": [f"model/{base['key']}"]}
    assert str(tmp_path) not in (tmp_path / "plan.json").read_text()


def test_writing_again_keeps_results_and_unchanged_files(tmp_path: Path) -> None:
    compile_to(tmp_path, MADE, "agentc: 1\n")
    result = tmp_path / ".agentc/store/objects/model/x/artifact.json"
    result.parent.mkdir(parents=True)
    result.write_text("{}")
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1))
    other = plan(job("base", "model", settings={"seed": 1}))
    compile_to(tmp_path, other, "agentc: 1\n")
    assert result.read_text() == "{}"
    assert (tmp_path / "Snakefile").stat().st_mtime == 1
    assert (tmp_path / "plan.json").read_text() == render_plan(other)


def test_a_failure_leaves_the_old_plan(tmp_path: Path) -> None:
    compile_to(tmp_path, MADE)
    before = (tmp_path / "plan.json").read_text()
    (tmp_path / "toy.yaml").mkdir()  # the spec cannot be written
    other = plan(job("base", "model", settings={"seed": 1}))
    with pytest.raises(OSError, match=r"toy\.yaml"):
        compile_to(tmp_path, other, "agentc: 1\n")
    assert (tmp_path / "plan.json").read_text() == before
    assert not list(tmp_path.glob(".*"))


def test_a_spec_may_have_any_name(tmp_path: Path) -> None:
    from dataclasses import replace

    compile_to(tmp_path, replace(MADE, spec_file="config.yaml"), "agentc: 1\n")
    assert (tmp_path / "spec-config.yaml").read_text() == "agentc: 1\n"
    assert "spec_directory" in (tmp_path / "config.yaml").read_text()


def test_the_place_of_the_spec_is_relative(tmp_path: Path) -> None:
    compile_to(tmp_path / "out", MADE, None, tmp_path / "specs")
    assert 'spec_directory: "../specs"' in (tmp_path / "out/config.yaml").read_text()


def test_data_files_of_the_checkout(repository: Path) -> None:
    assert resources.snakefile() == repository / "Snakefile"
    assert (resources.profile("slurm") / "config.yaml").is_file()


def test_data_files_of_an_installed_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no checkout around the package, its own copy serves."""
    package = tmp_path / "lib/site-packages/agentc"
    (package / "_data/templates").mkdir(parents=True)
    (package / "_data/Snakefile").touch()
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resources.data_directory() == package / "_data"
    (package / "_data/Snakefile").unlink()
    with pytest.raises(FileNotFoundError, match="lacks its data files"):
        resources.data_directory()
