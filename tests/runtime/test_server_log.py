"""What people read of a server's log: the cause that it names, of its last start, and no noise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.runtime.servers.server_log import describe_log, last_lines, size_of

SPEC = {"causes": [r"fatal: (?P<cause>.+)", r"^second choice$"], "noise": ["^chatter"]}


def written(folder: Path, *lines: str) -> Path:
    log = folder / "server.log"
    with log.open("a") as out:
        out.write("".join(f"{line}\n" for line in lines))
    return log


def test_the_first_line_of_the_first_pattern_is_the_cause(tmp_path: Path) -> None:
    log = written(tmp_path, "second choice", "fatal: no memory", "fatal: and so on", "the end")
    assert describe_log(log, SPEC).startswith(f": no memory; its last lines ({log}):\nsecond")
    assert describe_log(log, {"causes": SPEC["causes"][1:]}).startswith(": second choice; ")
    assert describe_log(log, {}).startswith("; its last lines")


def test_an_earlier_start_is_no_cause(tmp_path: Path) -> None:
    log = written(tmp_path, "fatal: the first start")
    begins = size_of(log)
    assert "wrote no log" in describe_log(log, SPEC, begins)
    written(tmp_path, "other words")
    assert describe_log(log, SPEC, begins) == f"; its last lines ({log}):\nother words"
    assert last_lines(log, 20, begins) == "other words"
    assert last_lines(log, 20) == "fatal: the first start\nother words"
    # A log that was written again is shorter than it was.
    log.write_text("new\n")
    assert last_lines(log, 20, begins) == "new"


def test_noise_and_tracebacks_are_left_out(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        "chatter 1",
        "(W pid=1) Traceback (most recent call last):",
        '(W pid=1)   File "x.py", line 1, in f',
        "(W pid=1)     raise ValueError(",
        "(W pid=1) ValueError: no such thing",
        "(W pid=1) after it",
        "Traceback (most recent call last):",
        '  File "y.py", line 1, in g',
        "KeyError: 1",
        *["chatter"] * 30,
    )
    assert describe_log(log, SPEC).split("\n")[1:] == [
        "(W pid=1) ValueError: no such thing",
        "(W pid=1) after it",
        "KeyError: 1",
    ]
    # A backend that names no noise has its log shown as it is.
    assert describe_log(log, {}).split("\n")[1:] == ["chatter"] * 20


SERVER = """
import pathlib, sys
count = pathlib.Path({count!r})
with count.open("a") as out: out.write("x")
print("fatal: start", len(count.read_text()))
for number in range(150): print("chatter", number)
sys.exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="jobs run on Linux")
def test_a_server_that_ends_by_itself_is_told_with_the_cause_of_its_last_start(
    plan: TinyPlan, tmp_path: Path
) -> None:
    """The cause is 150 lines above the end; status 0 is no success; the second attempt appends to
    the log of the first."""
    program = tmp_path / "server.py"
    program.write_text(SERVER.format(count=str(tmp_path / "count")))
    lease = plan.lease(port="held", **SPEC)
    lease["program"][0] = str(program)
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    plan.job("act", inputs={"model": ["model"]}, leases=[lease])
    assert plan.run("model").returncode == 0
    for attempt in (1, 2):
        done = plan.run("act")
        assert done.returncode == 1
        said = f"(serve.tiny) exited with 0 while it was needed: start {attempt}; its last"
        assert said in done.stderr, done.stderr
