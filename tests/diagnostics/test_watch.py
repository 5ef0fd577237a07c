"""`agentc check --watch` as typed: one answer for each change, however an editor writes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

RIGHT = Path("specs/quickstart.yaml")
WRONG = "agentc: 1\nname: demo\nstags: {}\n"


class Watcher:
    """A running `agentc check --watch --format json`; `answer` is the next line of JSON."""

    def __init__(self, *words: str, folder: Path) -> None:
        code = "import sys; from agentc.cli import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "check", "--watch", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.out: queue.Queue[str] = queue.Queue()
        self.err: queue.Queue[str] = queue.Queue()
        for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            threading.Thread(target=self._read, args=(stream, lines), daemon=True).start()

    def _read(self, stream: object, lines: queue.Queue[str]) -> None:
        for line in stream:  # type: ignore[attr-defined]
            lines.put(line)

    def answer(self) -> list[str]:
        """The codes of the next answer, once the watch for changes has begun again."""
        line = self.out.get(timeout=PATIENCE_S)
        while "watching" not in self.err.get(timeout=PATIENCE_S):
            pass
        return [found["code"] for found in json.loads(line)["diagnostics"]]

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Watcher]]:
    running: list[Watcher] = []

    def start(*words: str) -> Watcher:
        running.append(Watcher(*words, folder=tmp_path))
        return running[-1]

    yield start
    for each in running:
        with contextlib.suppress(ProcessLookupError):
            each.process.kill()
        each.process.wait()


def rewrite(path: Path, text: str) -> None:
    path.write_text(text)


def replace(path: Path, text: str) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_text(text)
    beside.rename(path)


PAUSE_S = 0.4


def delete_and_write(path: Path, text: str) -> None:
    path.unlink()
    time.sleep(PAUSE_S)
    path.write_text(text)


@pytest.mark.parametrize("write", [rewrite, replace, delete_and_write])
def test_each_way_to_save_is_one_answer(
    write: Callable[[Path, str], None],
    started: Callable[..., Watcher],
    tmp_path: Path,
    repository: Path,
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(WRONG)
    watcher = started("spec.yaml", "--format", "json")
    assert watcher.answer() == ["AGC201"]
    for text, codes in (((repository / RIGHT).read_text(), []), (WRONG, ["AGC201"])):
        began = time.monotonic()
        write(spec, text)
        usual = PAUSE_S if write is delete_and_write else 0.0
        # What a busy machine stretches may be seen half done; then the last answer counts.
        stretched = time.monotonic() - began > usual + 0.1
        found = watcher.answer()
        while stretched and found != codes:
            found = watcher.answer()
        assert found == codes
    time.sleep(0.5)
    assert watcher.out.empty()
    assert watcher.interrupt() == 130
    assert "Traceback" not in "".join(list(watcher.err.queue))


def test_a_spec_may_come_later_and_go(started: Callable[..., Watcher], tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    watcher = started("spec.yaml", "--format", "json")
    assert watcher.answer() == ["AGC101"]
    spec.write_text(WRONG)
    assert watcher.answer() == ["AGC201"]
    spec.unlink()
    assert watcher.answer() == ["AGC101"]
    assert watcher.interrupt() == 130


def test_a_template_is_watched_too(started: Callable[..., Watcher], tmp_path: Path) -> None:
    spec = "agentc: 1\nname: demo\nmodels:\n  base:\n    use: ./base.yaml\n"
    body = "    backend: hf\n    repo: acme/small\n    revision: " + "0" * 40 + "\n"
    template = "agentc: 1\ntemplate: model\ndoc: A model.\nbody:\n" + body.replace("    ", "  ")
    (tmp_path / "spec.yaml").write_text(spec)
    watcher = started("spec.yaml", "--format", "json")
    assert watcher.answer() == ["AGC421"]  # a file that is not there yet
    (tmp_path / "base.yaml").write_text(template.replace("repo:", "repos:"))
    assert watcher.answer() == ["AGC201"]
    (tmp_path / "base.yaml").write_text(template)
    assert watcher.answer() == []
    assert watcher.interrupt() == 130


def test_text_that_is_no_terminal_is_not_cleared(
    started: Callable[..., Watcher], tmp_path: Path
) -> None:
    (tmp_path / "spec.yaml").write_text(WRONG)
    watcher = started("spec.yaml")
    lines = []
    while not lines or "watching" not in lines[-1]:
        lines.append(watcher.err.get(timeout=PATIENCE_S))
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] checking spec.yaml\n", lines[0])
    assert lines[1].startswith("spec.yaml:3:1: error[AGC201]")
    assert watcher.interrupt() == 130
    assert watcher.out.empty()
    assert "\x1b" not in "".join(lines)


def test_a_terminal_is_cleared_before_each_answer(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(WRONG)
    code = "import sys; from agentc.cli import main; sys.exit(main())"
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, "check", "--watch", "spec.yaml"],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = ""
    deadline = time.monotonic() + PATIENCE_S
    while "watching" not in seen and time.monotonic() < deadline:
        seen += os.read(ours, 4096).decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE_S) == 130
    os.close(ours)
    assert seen.startswith("\x1b[2J")
    assert "AGC201" in seen


def test_vs_code_matches_what_is_printed(
    started: Callable[..., Watcher], tmp_path: Path, repository: Path
) -> None:
    """The task of docs/editors.md finds each fault, and where an answer begins and ends."""
    page = (repository / "docs" / "editors.md").read_text()
    task = next(
        json.loads(block)["tasks"][0]
        for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)
        if '"tasks"' in block
    )
    matcher = task["problemMatcher"]
    (tmp_path / "spec.yaml").write_text(WRONG)
    words = [word for word in task["args"] if word not in ("check", "--watch", "${file}")]
    watcher = started("spec.yaml", *words)
    lines = []
    while not lines or "watching" not in lines[-1]:
        lines.append(watcher.err.get(timeout=PATIENCE_S).rstrip("\n"))
    assert re.search(matcher["background"]["beginsPattern"], lines[0])
    assert re.search(matcher["background"]["endsPattern"], lines[-1])
    found = [m for m in (re.search(matcher["pattern"]["regexp"], line) for line in lines) if m]
    assert len(found) == 1
    seen = {part: found[0][matcher["pattern"][part]] for part in ("file", "line", "code")}
    assert seen == {"file": "spec.yaml", "line": "3", "code": "AGC201"}


def test_sarif_is_for_one_check(started: Callable[..., Watcher]) -> None:
    assert started("spec.yaml", "--format", "sarif").process.wait(timeout=PATIENCE_S) == 2
