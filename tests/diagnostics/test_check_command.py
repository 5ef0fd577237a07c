"""`agentc check` as typed: exit codes, formats, and no traceback for any input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.pace import least
from tests.support.patience import PATIENCE_S

from agentc.cli import COMMANDS, main

Typed = Callable[..., tuple[int, str, str]]

GOOD = "specs/quickstart.yaml"


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs a command in a folder, in this process: exit code, output, errors."""

    def run(*words: str, folder: Path) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        code = main(words)
        return code, *capsys.readouterr()

    return run


def agentc(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from agentc.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_right_spec(repository: Path, typed: Typed) -> None:
    code, out, err = typed("check", GOOD, folder=repository)
    assert (code, err) == (0, "")
    assert out.startswith(f"{GOOD}: no errors")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["check", GOOD, "-p", "rounds=3", "-p", "seed=5"], 0, ""),
        (["check", GOOD, "-p", "rounds=0"], 1, "AGC307"),
        (["check", GOOD, "-p", "rounds"], 2, "NAME=VALUE"),
        (["check", "absent.yaml"], 1, "AGC101"),
        (["chekc"], 2, "did you mean `check`?"),
        (["check"], 2, "usage: agentc check "),
        (["--nonsense"], 2, "usage: agentc "),
    ],
)
def test_exit_codes(words: list[str], code: int, said: str, repository: Path, typed: Typed) -> None:
    found, _, err = typed(*words, folder=repository)
    assert (found, said in err) == (code, True), err
    assert "Traceback" not in err


def test_errors_are_text_on_stderr_or_json_on_stdout(tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "bad.yaml").write_text("agentc: 1\nname: demo\nstags: {}\n")
    code, out, err = typed("check", "bad.yaml", folder=tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith("bad.yaml:3:1: error[AGC201]")
    code, out, _ = typed("check", "bad.yaml", "--format", "json", folder=tmp_path)
    assert code == 1
    assert json.loads(out)["diagnostics"][0]["line"] == 3


def test_version_and_help(tmp_path: Path, typed: Typed) -> None:
    assert typed("--version", folder=tmp_path)[1].startswith("agentc ")
    code, out, _ = typed("--help", folder=tmp_path)
    assert code == 0
    for command in COMMANDS:
        assert f"\n  {command}" in out
    assert "exit codes" in out


def test_the_package_is_the_command(repository: Path) -> None:
    def package(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agentc", *words],
            cwd=repository,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    for words in (("check", GOOD), ("check", "absent.yaml")):
        ours, theirs = package(*words), agentc(*words, folder=repository)
        assert (ours.returncode, ours.stdout, ours.stderr) == (
            theirs.returncode,
            theirs.stdout,
            theirs.stderr,
        )


def test_an_interpreter_that_may_not_be_executed_is_no_bug(tmp_path: Path) -> None:
    """By whichever command it is started."""
    spec = tmp_path / "x.yaml"
    spec.write_text("agentc: 1\n")
    python = tmp_path / "python3.11"
    python.write_text("#!/bin/sh\n")
    (tmp_path / "sitecustomize.py").write_text(
        "import subprocess\n"
        "import agentc.front.read_module as front\n"
        f"front.build_module = lambda *_, **__: subprocess.run([{str(python)!r}])\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = agentc("check", str(spec), folder=tmp_path, PYTHONPATH=path)
    assert done.returncode == 3
    assert f"agentc: the interpreter {python} cannot be started: " in done.stderr
    assert f"may not execute {python} ({python} is -rw" in done.stderr


def test_a_bug_is_said_to_be_one(tmp_path: Path) -> None:
    spec = tmp_path / "x.yaml"
    spec.write_text("agentc: 1\n")
    broken = tmp_path / "sitecustomize.py"  # a compiler that raises, as a bug would make it
    broken.write_text(
        "import agentc.front.read_module as front\n"
        "def build_module(*_): raise KeyError('lost')\n"
        "front.build_module = build_module\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = agentc("check", str(spec), folder=tmp_path, PYTHONPATH=path)
    assert done.returncode == 70
    assert "this is a bug in agentc" in done.stderr
    assert "Traceback" not in done.stderr
    done = agentc("check", str(spec), folder=tmp_path, PYTHONPATH=path, AGENTC_DEBUG="1")
    assert "Traceback" in done.stderr


def test_only_the_typed_command_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from agentc.cli import main; main(['check', 'absent.yaml']); "
        "print(sorted(m for m in sys.modules if m.startswith('agentc.cli.')), "
        "[m for m in ('rich', 'jsonschema', 'snakemake', 'numpy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (
        done.stdout.strip()
        == "['agentc.cli.arguments', 'agentc.cli.check', 'agentc.cli.parser'] []"
    )


@pytest.mark.slow
@pytest.mark.alone
def test_check_takes_less_than_its_budget(repository: Path) -> None:
    """0.3 s in a warm process (test_lightness.py); here Python and its modules start as well. CPU
    time is taken, since the machine is shared."""

    def seconds() -> float:
        before = os.times()
        start = time.perf_counter()
        assert agentc("check", "specs/eto/textcraft.yaml", folder=repository).returncode == 0
        after = os.times()
        cpu = after.children_user + after.children_system
        cpu -= before.children_user + before.children_system
        return min(cpu, time.perf_counter() - start)

    assert least(seconds, 0.6) < 0.6  # twice the budget: CI machines differ
