"""`agentc run | head -1`: a command whose reader goes away ends with its own exit code, and what it
was to do is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from agentc.cli import COMMANDS
from agentc.output import Reaction, reaction_of

SPEC = """
agentc: 1
name: gone
stages:
  fine: {kind: script, run: program.py, output: folder, params: {fails: false}}
  bad: {kind: script, run: program.py, inputs: {x: fine}, output: folder, params: {fails: true}}
"""
PROGRAM = """
import json, pathlib, sys
stage = json.loads(pathlib.Path(sys.argv[1]).read_text())
if stage["params"]["fails"]:
    sys.exit("on purpose")
pathlib.Path(stage["output"]["folder"], "made.txt").write_text("x")
"""


def without_reader(folder: Path, *words: str, both: bool = False) -> tuple[int, str]:
    """Exit code and standard error of a command that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "agentc", *words],
            cwd=folder,
            stdout=writing,
            stderr=writing if both else subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        os.close(writing)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize(
    ("typed", "reaction"),
    [
        *((name, "continue") for name in ("run x.yaml", "search x.yaml", "lock", "cancel")),
        *(
            (name, "continue")
            for name in ("software sync x.yaml", "software rm a", "store gc --delete")
        ),
        *((name, "continue") for name in ("bundle x.yaml", "data fetch a", "push", "track")),
        *(
            (name, "continue silently")
            for name in ("check x.yaml", "plan --cost x", "diff a b", "report --claims")
        ),
        *(
            (name, "end")
            for name in ("dev schema", "store", "software ls", "data", "--version", "")
        ),
        *(
            (name, "end")
            for name in ("run --help", "check --watch x.yaml", "status", "init --templates")
        ),
    ],
)
def test_what_a_command_does_when_its_reader_goes(typed: str, reaction: Reaction) -> None:
    assert reaction_of(typed.split()) == reaction


def test_a_command_continues_unless_it_is_known_to_print() -> None:
    """A new one that does something must not end because nobody reads."""
    assert reaction_of(["some-new-command"]) == "continue"
    printing = {name for name in COMMANDS if reaction_of([name, "x"]) == "end"}
    assert printing <= {"status", "why", "graph", "explain", "logs"}
    assert reaction_of(["status", "--forget", "x"]) == "continue"


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True], ids=["output", "output and errors"])
def test_a_run_without_a_reader_ends_with_its_own_exit_code(both: bool, tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").write_text(SPEC)
    (tmp_path / "program.py").write_text(PROGRAM)
    words = ("run", "gone.yaml", "--store", "store", "--plain")
    code, errors = without_reader(tmp_path, *words, both=both)
    assert code == 3, errors
    made = [
        json.loads(path.read_text())["id"] for path in tmp_path.glob("store/objects/*/*/*.json")
    ]
    assert "fine" in made, "the run continued after its first line"
    if not both:
        assert errors.count("nobody reads the output any more") == 1
        assert "on purpose" in errors


def test_commands_that_only_print_end_in_silence(tmp_path: Path) -> None:
    assert without_reader(tmp_path, "dev", "schema") == (0, "")


def test_the_verdict_of_a_check_is_its_exit_code_whoever_reads_it(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("agentc: 1\nname: bad\nstagess: {}\n")
    code, errors = without_reader(tmp_path, "check", "bad.yaml")
    assert code == 1
    assert "nobody reads" not in errors
