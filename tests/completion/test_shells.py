"""`agentc dev completion` in the shells themselves: a line is typed in a terminal, with tab."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
INTERACTIVE = {
    "bash": (("--norc", "--noprofile", "-i"), 'eval "$(agentc dev completion bash)"'),
    "zsh": (("-f", "-i"), 'autoload -U compinit; compinit -u; eval "$(agentc dev completion zsh)"'),
}
LINES = {
    "agentc che\t": "agentc check ",
    "agentc run specs/quickst\t-p se\t5": "agentc run specs/quickstart.yaml -p seed=5",
    "agentc plan specs/quickstart.yaml --until eto.2.dp\t": "--until eto.2.dpo ",
}


def environment(folder: Path) -> dict[str, str]:
    """One with this agentc, and with nobody's settings."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name.startswith("AGENTC_")}
    return {**kept, "PATH": programs, "HOME": str(folder), "TERM": "dumb", "PS1": "> "}


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, words: list[str], environ: dict[str, str]) -> None:
        self.shown = ""
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(ROOT)
            os.execve(words[0], words, environ)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Until `text` is shown, but for colours and moves of the cursor."""
        until = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            ready, _, _ = select.select([self.terminal], [], [], until - time.monotonic())
            assert ready, f"{text!r} is not shown: {self.shown!r}"
            said = os.read(self.terminal, 4096).decode("utf-8", "replace")
            self.shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x07", "", self.shown + said)
            self.shown = re.sub(r"[^\x08]\x08", "", self.shown)  # zsh writes over what it wrote

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.process, 0)


@pytest.mark.parametrize("shell", INTERACTIVE)
def test_a_line_is_completed_in_a_terminal(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    options, begin = INTERACTIVE[shell]
    terminal = Terminal([program, *options], environment(tmp_path))
    try:
        terminal.type(f"{begin}; echo ready-${{#HOME}}\n")
        terminal.wait_for(f"ready-{len(str(tmp_path))}")
        for typed, completed in LINES.items():
            terminal.shown = ""
            terminal.type(typed)
            terminal.wait_for(completed)
            terminal.type("\x15")  # Ctrl-U: the line is not run
    finally:
        terminal.close()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_shows_words_with_their_meaning(tmp_path: Path) -> None:
    def offered(line: str) -> list[str]:
        words = [
            "fish",
            "--no-config",
            "-c",
            f"agentc dev completion fish | source; complete -C '{line}'",
        ]
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, cwd=ROOT, env=environment(tmp_path)
        )
        return done.stdout.splitlines()

    [check] = offered("agentc che")
    assert check.startswith("check\tsay whether specs are right")
    rounds, seed = offered("agentc run specs/quickstart.yaml -p ")
    assert seed == "seed=\tSeed of weights, shuffling and sampling."
    assert rounds.startswith("rounds=\t")
