"""The GitHub Action: its steps are read from action.yml and run in bash as a runner runs them.

Steps of others (`uses:`) are not: they need GitHub.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
WRONG = "agentc: 1\nname: demo\nstags: {}\n"


@dataclass
class Runner:
    """Runs one action in a project: `given` are its inputs, `outputs` those of its steps."""

    project: Path
    temp: Path
    given: Mapping[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""

    def value(self, text: str) -> str:
        """A text with its expressions replaced."""

        def known(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("inputs."):
                declared = ACTION["inputs"][name.removeprefix("inputs.")]
                return self.given.get(name.removeprefix("inputs."), declared["default"])
            facts = {
                "github.action_path": str(ROOT),
                "runner.temp": str(self.temp),
                "steps.python.outputs.python-path": sys.executable,
            }
            return facts[name] if name in facts else self.outputs.get(name, "")

        return re.sub(r"\$\{\{ ([a-z._-]+) \}\}", known, text)

    def wanted(self, step: Mapping[str, Any]) -> bool:
        """Whether the `if:` of a step holds: comparisons with texts, joined by `&&`."""
        condition = re.fullmatch(r"\$\{\{ (.*) \}\}", step.get("if", "${{ '' == '' }}"))
        assert condition is not None
        for part in condition[1].split(" && "):
            left, sign, right = part.partition(" == ") if " == " in part else part.partition(" != ")
            value = "" if left == "''" else self.value(f"${{{{ {left} }}}}")
            if (value == right.strip("'")) != (sign == " == "):
                return False
        return True

    def run(self, name: str) -> int:
        """The exit code of a step."""
        step = STEPS[name]
        assert step["shell"] == "bash"
        files = {key: self.temp / key for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.touch()
        script = self.temp / f"{name}.sh"
        assert "${{" not in step["run"]  # what a runner would paste into the program
        script.write_text(step["run"])
        kept = {key: os.environ[key] for key in os.environ if key.startswith(("AGENTC_", "PIP_"))}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.project,
            env={
                **kept,
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(self.temp),
                **{key: self.value(str(text)) for key, text in step.get("env", {}).items()},
                **{key: str(path) for key, path in files.items()},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log += done.stdout
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            key, _, value = line.partition("=")
            self.outputs[f"steps.{name}.outputs.{key}"] = value
        return done.returncode

    def job(self) -> int:
        """All steps but the installation; the first code that is not 0, where a runner stops."""
        for name, step in STEPS.items():
            if name not in ("python", "install", "upload") and self.wanted(step):
                code = self.run(name)
                if code:
                    return code
        return 0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "specs").mkdir(parents=True)
    shutil.copy(ROOT / "specs" / "quickstart.yaml", tmp_path / "project" / "specs" / "right.yaml")
    (tmp_path / "temp" / "agentc" / "bin").mkdir(parents=True)
    return tmp_path / "project"


def runner(project: Path, *, installed: bool = True, **given: str) -> Runner:
    """With this agentc in the place of one that the action installs."""
    temp = project.parent / "temp"
    program = temp / "agentc" / "bin" / "agentc"
    if installed and not program.exists():
        program.symlink_to(Path(sys.executable).with_name("agentc"))
    return Runner(project, temp, {name.replace("_", "-"): text for name, text in given.items()})


def test_specs_that_are_right(project: Path) -> None:
    action = runner(project, plan="specs/right.yaml\n")
    assert action.job() == 0
    assert action.outputs["steps.check.outputs.errors"] == "false"
    log = json.loads(Path(action.outputs["steps.check.outputs.sarif"]).read_text())
    assert (log["version"], log["runs"][0]["results"]) == ("2.1.0", [])
    summary = (action.temp / "GITHUB_STEP_SUMMARY").read_text()
    assert summary.startswith("### specs/right.yaml\n\n```text\n")
    assert "eto" in summary
    assert "no errors" in action.log


def test_a_spec_with_errors_fails_after_its_file_is_written(project: Path) -> None:
    (project / "specs" / "wrong.yaml").write_text(WRONG)
    action = runner(project, plan="specs/right.yaml")
    assert action.job() == 1
    assert action.outputs["steps.check.outputs.errors"] == "true"
    log = json.loads(Path(action.outputs["steps.check.outputs.sarif"]).read_text())
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in log["runs"][0]["results"]
    ]
    assert set(places) == {"specs/wrong.yaml"}
    assert "specs/wrong.yaml:3:1: error[AGC201]" in action.log
    assert "::error title=agentc check::" in action.log
    assert (action.temp / "GITHUB_STEP_SUMMARY").read_text() == ""


def test_names_are_words_and_no_program(project: Path) -> None:
    odd = project / "specs" / "a $(touch made) `b`.yaml"
    odd.write_text(WRONG)
    action = runner(project, specs=f"specs/{odd.name}\n")
    assert action.job() == 1
    assert f"{odd.name}:3:1: error[AGC201]" in action.log
    assert not list(project.rglob("made"))


def test_a_folder_without_specs_and_a_wrong_command_line_fail(project: Path) -> None:
    (project / "empty").mkdir()
    action = runner(project, specs="empty")
    assert action.job() == 1
    assert "there is no spec in the folder empty" in action.log
    assert runner(project, specs="--no-such-option").job() == 2


def test_a_spec_without_a_lock_is_refused_where_locks_are_asked_for(project: Path) -> None:
    action = runner(project, locked="true")
    assert action.job() == 1
    assert "AGC" in action.log


def test_every_input_is_used_and_explained() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for name in ACTION["inputs"]:
        assert f"inputs.{name} " in text, name
        assert f"| `{name}` |" in page, name
    block = page.split("```yaml\n")[1].split("```")[0]
    [*_, use] = yaml.safe_load(block)["jobs"]["check"]["steps"]
    assert set(use["with"]) <= set(ACTION["inputs"])


@pytest.mark.long
def test_it_installs_the_checkout_that_it_stands_in(project: Path) -> None:
    shutil.rmtree(project.parent / "temp" / "agentc")
    action = runner(project, installed=False, packages="\n")
    assert action.run("install") == 0, action.log
    assert action.log.startswith("agentc ")
    assert action.job() == 0, action.log
