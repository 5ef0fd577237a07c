"""The hook for pre-commit: its words are a command line of ours, for whatever files are changed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomllib
import yaml

from agentc.cli import main

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"


@pytest.fixture
def hook() -> dict[str, Any]:
    [only] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    found: dict[str, Any] = only
    return found


def test_it_starts_the_command_that_the_distribution_installs(hook: dict[str, Any]) -> None:
    assert (hook["id"], hook["language"]) == ("agentc-check", "python")
    assert (hook["types"], hook["pass_filenames"]) == (["yaml"], True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert shlex.split(hook["entry"])[0] in project["scripts"]


def test_files_that_are_no_specs_let_a_commit_pass(
    hook: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "specs" / "quickstart.yaml", "right.yaml")
    shutil.copy(ROOT / "templates" / "evaluate.yaml", "template.yaml")
    Path("ci.yml").write_text("jobs: {test: {steps: []}}\n")
    Path("no yaml at all.yaml").write_text("{{ templated }}: [\n")
    Path("wrong.yaml").write_text("agentc: 1\nname: demo\nstags: {}\n")
    words = [*shlex.split(hook["entry"])[1:], *hook.get("args", [])]
    others = ["template.yaml", "ci.yml", "no yaml at all.yaml"]
    for files, code in (
        (["ci.yml"], 0),
        (["right.yaml", *others], 0),
        (["wrong.yaml"], 1),
        ([*others, "wrong.yaml", "right.yaml"], 1),
    ):
        assert main([*words, *files]) == code, files
    shown = capsys.readouterr()
    assert shown.err.count("error[") == 2
    assert shown.err.count("wrong.yaml:3:1: error[AGC201]") == 2


def test_the_page_names_the_hook_that_there_is(hook: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")
    section = page.split("## Before each commit")[1]
    blocks = [yaml.safe_load(each.split("```")[0]) for each in section.split("```yaml\n")[1:]]
    ours, local = (block["repos"][0] for block in blocks)
    assert [each["id"] for each in ours["hooks"]] == [hook["id"]]
    [same] = local["hooks"]
    for key in ("id", "entry", "types", "require_serial"):
        assert same[key] == hook[key], key


@pytest.mark.skipif(shutil.which("pre-commit") is None, reason="pre-commit is not installed")
def test_pre_commit_accepts_it() -> None:
    words = ["pre-commit", "validate-manifest", str(MANIFEST)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
