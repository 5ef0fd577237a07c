"""Paths of a spec stay in its folder, links followed, unless a directory is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.model_folder import write_model_folder
from tests.support.patience import PATIENCE_S

from agentc.cli import main
from agentc.source.files import Boundary, OutsideError, allowed_paths

Check = Callable[..., tuple[int, str]]
SPEC = "agentc: 1\nname: demo\nmodels:\n  base: {{backend: path, path: {path}}}\n"

STAGES = """\
prompts: {plain: {instruction: "", reply_format: text}}
stages:
  expert: {kind: expert, environment: detective, prompt: plain, split: all}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a spec's place `here`, and a model in `here/model` and in `there/model`."""
    for name in ("here", "there"):
        write_model_folder(tmp_path / name / "model")
    return tmp_path


@pytest.fixture
def check(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Check:
    """Checks the spec with a path in it: the status, and what was said."""

    def called(path: str, *words: str, **variables: str) -> tuple[int, str]:
        (folder / "here" / "spec.yaml").write_text(SPEC.format(path=path))
        with monkeypatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            code = main(["check", str(folder / "here" / "spec.yaml"), *words])
        return code, capsys.readouterr().err

    return called


def check_apart(folder: Path, path: str, *words: str) -> tuple[int, str]:
    """By a process of its own, for what might never end."""
    spec = folder / "here" / "spec.yaml"
    spec.write_text(SPEC.format(path=path))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("agentc")), "check", str(spec), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stderr


def test_inside_is_as_it_was(folder: Path, check: Check) -> None:
    assert check("model") == (0, "")
    assert check("./model/../model") == (0, "")
    (folder / "here" / "link").symlink_to("model")
    assert check("link") == (0, "")


@pytest.mark.parametrize(
    "path",
    [
        "../there/model",
        "model/../../there/model",
        "/etc",
        "~/model",
        '"~root"',
        "linked",
        "a/linked",
    ],
)
def test_outside_is_refused_at_its_place(path: str, folder: Path, check: Check) -> None:
    (folder / "here" / "linked").symlink_to(folder / "there" / "model")
    (folder / "here" / "a").symlink_to(folder / "here")
    code, shown = check(path)
    assert code == 1
    assert "spec.yaml:4:" in shown
    assert "error[AGC123]" in shown
    assert shown.count("error[") == 1, shown
    assert "--allow-path" in shown


def test_settings_beside_a_path_that_leads_out_have_no_faults_of_their_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = folder / "here" / "spec.yaml"
    environment = "{backend: detective, game: ../there/detective.z5, actions: free, points: 3}"
    spec.write_text(f"agentc: 1\nname: demo\nenvironments:\n  detective: {environment}\n" + STAGES)
    assert main(["check", str(spec)]) == 1
    shown = capsys.readouterr().err
    assert "error[AGC123]" in shown
    assert shown.count("error[") == 1, shown


def test_an_absolute_path_into_the_folder_is_inside(folder: Path, check: Check) -> None:
    assert check(str(folder / "here" / "model")) == (0, "")


def test_a_directory_is_allowed_by_option_or_variable(folder: Path, check: Check) -> None:
    there = str(folder / "there")
    assert check(f"{there}/model", "--allow-path", there) == (0, "")
    assert check("../there/model", "--allow-path", there) == (0, "")
    assert check(f"{there}/model", AGENTC_ALLOW_PATH=f"/nowhere:{there}") == (0, "")
    assert check("~/model", "--allow-path", "~", HOME=there) == (0, "")
    code, _ = check(f"{there}-too/model", "--allow-path", there)
    assert code == 1


def test_a_link_inside_of_a_model_does_not_lead_out(folder: Path, check: Check) -> None:
    (folder / "here" / "model" / "README.md").symlink_to("/etc/passwd")
    code, shown = check("model")
    assert code == 1
    assert "error[AGC123]" in shown
    assert "/etc/passwd" in shown
    assert check("model", "--allow-path", "/etc") == (0, "")


@pytest.mark.parametrize("name", ["/dev/zero", "/proc/self/environ"])
def test_devices_are_not_read(name: str, folder: Path) -> None:
    (folder / "here" / "model" / "endless").symlink_to(name)
    code, _ = check_apart(folder, "model")
    assert code == 1
    if name == "/dev/zero":
        code, shown = check_apart(folder, "model", "--allow-path", "/dev")
        assert "model holds endless, which cannot be read" in shown


def test_a_pipe_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "here" / "model" / "pipe")
    code, shown = check_apart(folder, "model")
    assert code == 1
    assert "model holds pipe, which cannot be read" in shown


def test_a_spec_reached_by_a_link_counts_from_where_it_lies(folder: Path, check: Check) -> None:
    assert check("model") == (0, "")
    (folder / "spec.yaml").symlink_to(folder / "here" / "spec.yaml")
    assert main(["check", str(folder / "spec.yaml")]) == 0


def test_what_is_no_path_is_outside(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    for written in ("a\0b", "~nobody-of-that-name/x", "circle/x"):
        with pytest.raises(OutsideError):
            Boundary(tmp_path).find(written)


def test_empty_parts_of_the_variable_allow_nothing() -> None:
    assert allowed_paths((), {"AGENTC_ALLOW_PATH": "::"}) == ()
    assert allowed_paths(["/a"], {"AGENTC_ALLOW_PATH": "/b:"}) == (Path("/a"), Path("/b"))
