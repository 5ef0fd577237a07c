"""No text that comes from outside moves a cursor: each road to a terminal cleans it."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.cli import main
from agentc.diagnostics.render import _PAINT
from agentc.plan.tree import _PAINT as TREE_COLOURS
from agentc.run.claims import _COLOURS as CLAIM_COLOURS
from agentc.run.observe import JobSnapshot
from agentc.runtime import job
from agentc.runtime.machine.output_filters import GuardedStream, guarded_output, printable
from agentc.runtime.servers.server_log import last_lines

HOSTILE = (
    "\x1b[2J",
    "\x1b]0;owned\x07",
    "\x1b]52;c;Y3VybA==\x1b\\",
    "\x1b[31m",
    "\x1b[8m",
    "\x1b[6n",
    "\x1bc",
    "\x1bP1$r\x1b\\",
    "\x9b2J",
    "\x9d0;owned\x9c",
    "\x07",
    "\x08\x08",
    "\x00",
    "\x7f",
    "\x0e",
    "\x1b",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ud800",
)
CONTROLS = [each for each in HOSTILE if each not in ("\u202e", "\u2066", "\u200b")]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_hostile_text_is_harmless_and_its_neighbours_stay(text: str) -> None:
    cleaned = printable(f"before {text}after\n\tit")
    assert all(char == "\n" or char.isprintable() for char in cleaned)
    assert cleaned.startswith("before ")
    assert cleaned.endswith("after\n    it") or text == "\x1b"


def test_plain_text_stays_as_it_is() -> None:
    text = "loss 0.5 — näher, 東京 ✓ {'a': 1}\nnext"
    assert printable(text) == text
    assert printable("10%\r50%\r100%\r\ndone\x0b") == "10%\n50%\n100%\ndone "


@pytest.mark.parametrize("text", CONTROLS, ids=ascii)
def test_a_guarded_stream_writes_no_control_character(text: str) -> None:
    behind = io.StringIO()
    print(f"a{text}b\tc", file=GuardedStream(behind))
    written = behind.getvalue()
    if text != "\x1b[31m":  # a colour that agentc uses itself
        assert not {*written} & {*map(chr, (*range(9), *range(11, 32), *range(127, 160)))}
    assert written.endswith("b\tc\n")


def test_a_guarded_stream_writes_the_colours_of_agentc() -> None:
    colours = [*_PAINT.values(), *TREE_COLOURS.values(), *CLAIM_COLOURS.values(), "\x1b[0m"]
    behind = io.StringIO()
    GuardedStream(behind).write("".join(colours))
    assert behind.getvalue() == "".join(colours)


def test_the_streams_are_what_they_were_afterwards() -> None:
    streams = sys.stdout, sys.stderr
    with guarded_output():
        assert isinstance(sys.stdout, GuardedStream)
        assert sys.stdout.fileno() == streams[0].fileno()
        with guarded_output():
            assert not isinstance(sys.stdout.unguarded, GuardedStream)
    assert (sys.stdout, sys.stderr) == streams


def test_last_lines_of_a_log_are_clean(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes("".join(HOSTILE).encode("utf-8", "surrogatepass") + b"\xff\nthe end\n")
    lines = last_lines(log, 20)
    assert all(char == "\n" or char.isprintable() for char in lines)
    assert lines.endswith("the end")


def test_what_is_known_of_a_job_is_clean() -> None:
    text = "".join(HOSTILE)
    seen = JobSnapshot(id="a", state="failed", message=text, warnings=(text,), health=(text,))
    for each in (seen.message, *seen.warnings, *seen.health):
        assert each.isprintable()


def test_every_command_and_every_wrapper_is_guarded(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The words of a command line are from outside too: a script may take them from a web page."""
    name = "AGC\x1b]0;owned\x07\x1b[2J\x9b1A"
    assert main(["explain", name]) != 0
    assert main(["status", name, "--store", str(tmp_path)]) != 0
    assert main(["check", str(tmp_path / name)]) != 0
    plan = str(tmp_path / name)
    assert job.main(["--plan", plan, "--store", str(tmp_path), "--job", name]) != 0
    said = capfd.readouterr()
    assert "owned" in said.err
    assert not {*said.out, *said.err} & {"\x1b", "\x07", "\x9b"}


def test_colours_still_reach_a_terminal(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("agentc: 1\nname: demo\nstagez: {}\n")
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "agentc", "check", str(spec)]
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    subprocess.run(command, stdout=inner, stderr=inner, env=environment, check=False)
    os.close(inner)
    said = b""
    while True:
        try:
            more = os.read(outer, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        said += more
    os.close(outer)
    assert b"\x1b[1;31merror" in said
