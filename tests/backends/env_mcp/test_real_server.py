"""A server of somebody else's (mcp-server-time), unmodified and offline, and one of ours that goes
wrong, over stdio and over HTTP: episodes, the checks of every environment, what is refused.
`make software-long` builds what they need."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S

from agentc.backend_api import load_backends
from agentc.conformance import BackendUnderTest, Bench, Skipped
from agentc.conformance.serving import served_checks
from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.software import MCP

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
ODD = Path(__file__).with_name("odd_server.py")
TIME = ["{python}", "-m", "mcp_server_time", "--local-timezone", "UTC"]
TO_TOKYO = (
    'convert_time {"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"}'
)
CLOCK = {
    "launch": {"command": TIME},
    "tasks": {
        "rows": [
            {"instruction": "What is it in Tokyo at 16:30 UTC?", "answer": "01:30"},
            {"instruction": "Convert a time to Tokyo's.", "tool": "convert_time"}
            | {"pattern": r'"time_difference": "\+9\.0h"'},
        ]
    },
}
PUTS = {
    "tasks": {
        "rows": [
            {"instruction": "Keep gold.", "pattern": "gold", "tool": "put"},
            {"instruction": "Say four.", "answer": "4"},
        ]
    },
    "timeout_s": PATIENCE_S,
}
HANGS_S = 60.0
"""Long enough for a loaded machine to open a session."""


def play(python: Path, settings: Any, *episodes: tuple[str, list[str]], allow: str = "1") -> Any:
    """What play.py tells; the words of its end where it refuses."""
    plan = {
        "settings": {"splits": {"test": "0-1"}, **settings},
        "episodes": [{"task": task, "actions": actions} for task, actions in episodes],
    }
    path = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
    done = subprocess.run(
        [str(python), str(Path(__file__).with_name("play.py"))],
        input=json.dumps(plan),
        env={**os.environ, "PYTHONPATH": path, "AGENTC_ALLOW_LAUNCH": allow},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def test_a_clock_of_somebody_elses(time_python: Path) -> None:
    told = play(
        time_python,
        {**CLOCK, "timeout_s": PATIENCE_S},
        ("mcp_0", ["what time is it?", TO_TOKYO, 'convert_time {"time": "3"}', "answer 1:30"]),
        ("mcp_0", ["Answer: 01:30 ", TO_TOKYO]),
        ("mcp_1", [TO_TOKYO.replace("Tokyo", "Toky"), TO_TOKYO]),
    )
    assert told["identity"]["server"] == {"name": "mcp-time", "version": "2026.10.19"}
    assert len(told["identity"]["fingerprint"]) == 32
    assert "01:30" not in json.dumps(told["identity"])
    first = told["firsts"][0]
    assert first.startswith("What is it in Tokyo at 16:30 UTC?\nTools:\nget_current_time: Get")
    assert "\n  time (string, required): Time to convert in 24-hour format (HH:MM)\n" in first
    assert "`answer` and a text" in first
    assert "`answer` and a text" not in told["firsts"][2]
    wrong, right, found = told["told"]
    assert wrong[0][0].startswith("`what` is no tool; there are get_current_time, convert_time.")
    assert '"time_difference": "+9.0h"' in wrong[1][0]
    assert "source_timezone\n  Field required" in wrong[2][0]
    assert [step[1:] for step in wrong] == [[0, False]] * 3 + [[0, True]]
    assert [step[1:] for step in right] == [[1, True], [1, True]]
    assert "Invalid timezone" in found[0][0]
    assert [step[1:] for step in found] == [[0, False], [1, True]]


def wrong_ways(python: Path, where: dict[str, Any]) -> Any:
    told = play(
        python,
        {**PUTS, **where},
        (
            "mcp_0",
            [
                'put {"word": "a"}',
                'go_wrong {"how": "tool"}',
                'go_wrong {"how": "arguments"}',
                'put {"w": 1}',
                'put {"word": "gold"}',
            ],
        ),
        ("mcp_1", ['put {"word": "b"}', "draw", 'go_wrong {"how": "else"}', "draw"]),
    )
    assert told["firsts"][0].startswith(
        "Mind the crash.\nKeep gold.\nTools:\nput: Keep a word; say"
    )
    first, second = told["told"]
    assert first[0] == ["a", 0, False]
    # The tool's own error holds the word that a success would.
    assert "gold is no error" in first[1][0]
    assert first[2][0] == "no such way"
    assert "Field required" in first[3][0]
    assert [step[1:] for step in first[1:]] == [[0, False]] * 3 + [[1, True]]
    assert first[4][0] == "a gold"
    # Sessions keep their own.
    assert second[0][0] == "b"
    assert second[1][0] == "a dot\n[image: image/png]"
    assert second[2] == "failure: `go_wrong`: the server is confused"
    assert second[3].startswith("error: reset the session")
    return told["identity"]["fingerprint"]


def test_what_goes_wrong_over_stdio_and_over_http(time_python: Path) -> None:
    by_stdio = wrong_ways(time_python, {"launch": {"command": ["{python}", str(ODD)]}})
    with listening(time_python) as url:
        assert wrong_ways(time_python, {"url": url}) == by_stdio


@contextmanager
def listening(python: Path) -> Iterator[str]:
    """The odd server's address over HTTP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([str(python), str(ODD), str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.kill()
        server.wait()


def test_a_server_that_crashes_or_hangs_voids_its_episode_alone(
    time_python: Path, tmp_path: Path
) -> None:
    own = shutil.copy(ODD, tmp_path)
    told = play(
        time_python,
        {**PUTS, "launch": {"command": ["{python}", own]}, "timeout_s": HANGS_S},
        ("mcp_0", ['go_wrong {"how": "crash"}', "draw"]),
        ("mcp_0", ['go_wrong {"how": "hang"}']),
        ("mcp_0", ['put {"word": "gold"}']),
    )
    crashed, hung, well = told["told"]
    assert crashed[0].startswith("failure: `go_wrong`: ")
    assert crashed[1].startswith("error: reset the session")
    assert hung[0].startswith("failure: `go_wrong`: ")
    assert well == [["gold", 1, True]]
    # None of its processes is left, the one that hangs neither.
    assert not [each for each in commands() if own in each]


def commands() -> Iterator[str]:
    """The command lines of this machine's processes."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield file.read_bytes().replace(b"\0", b" ").decode(errors="replace")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({**CLOCK, "tools": ["sing"]}, "`tools` names `sing`, the server has `get_current_time`"),
        (
            {**CLOCK, "tools": ["get_current_time"]},
            "task 1 succeeds by `convert_time`, which is none of its tools",
        ),
        ({**CLOCK, "launch": {"command": ["{python}", "-c", "exit(3)"]}}, "Connection closed"),
        ({**CLOCK, "launch": {"command": ["/no/such/server"]}}, "No such file"),
        ({**PUTS, "url": "http://127.0.0.1:9/mcp"}, "no session with http://127.0.0.1:9/mcp"),
    ],
)
def test_what_cannot_be_played_is_refused(
    settings: dict[str, Any], says: str, time_python: Path
) -> None:
    assert says in play(time_python, settings)


def test_a_command_is_not_run_unless_somebody_allows_it(time_python: Path, tmp_path: Path) -> None:
    command = ["touch", str(tmp_path / "run")]
    told = play(time_python, {**CLOCK, "launch": {"command": command}}, allow="0")
    assert "export AGENTC_ALLOW_LAUNCH=1" in told
    assert not (tmp_path / "run").exists()


def test_the_checks_of_every_environment(
    time_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_ALLOW_LAUNCH", "1")
    table = load_backends()
    subject = BackendUnderTest(
        backend=table.backends["env.mcp"],
        bench=Bench(table=table, directory=tmp_path),
        given={
            **CLOCK,
            "splits": {"train": {"range": [0, 1]}, "test": {"range": [1, 2]}},
            "sessions": 32,
        },
        pythons={lock_digest(MCP.lock): time_python},
    )
    skipped = []
    with ExitStack() as kept:
        for check in served_checks(subject, actions=["what?", TO_TOKYO, "answer 3"], kept=kept):
            try:
                check.run()
            except Skipped:
                skipped.append(check.name.removeprefix("serves: "))
    assert sorted(skipped) == ["expert", "fork", "privileged", "snapshot"]
