"""Our end of ALFWorld as released: starts the program in its software stack and asks it.

Rules are read from a released game (`game.tw-pddl`), from which the packed ones leave them out, or
from a folder with a `.pddl` and a `.twl2`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.runtime.software.job_software import ensure_software, read_complete
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from benchmarks.alfworld_upstream.play_games import MARK

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).with_name("upstream.lock")
_TASK = re.compile(r"Your task is to: [^\"\\\n]+")


@dataclass(frozen=True, slots=True)
class Rules:
    """Domain and grammar of a wording; the grammar has @@TASK@@ where a game's task goes."""

    domain: str
    grammar: str

    @property
    def wording(self) -> str:
        return "move" if "move {" in self.grammar else "put"


def read_rules(place: Path) -> Rules:
    """Raises OSError, ValueError or KeyError for what is none."""
    if place.is_dir():
        [domain], [grammar] = (list(place.glob(f"*{end}")) for end in (".pddl", ".twl2"))
        texts = domain.read_text(encoding="utf-8"), grammar.read_text(encoding="utf-8")
    else:
        game = json.loads(place.read_text(encoding="utf-8"))
        texts = game["pddl_domain"], game["grammar"]
    return Rules(texts[0], _TASK.sub(MARK, texts[1]))


def upstream_python(build: bool, report: Callable[[str], None]) -> Path | None:
    """The interpreter of the software stack; None where it is not built and shall not be."""
    # As in the Makefile.
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    layout = StoreLayout(ROOT / ".agentc" / "store")
    text = LOCK.read_text(encoding="utf-8")
    digest = lock_digest(text)
    directory = layout.software_stack(digest)
    if read_complete(directory) is None:
        if not build:
            return None
        directory, _ = ensure_software(layout, digest, text, report)
    return directory / "bin" / "python"


class Upstream:
    """The running program; `play` asks it for one game. Use as a context manager."""

    def __init__(self, python: Path, *, memoised: bool) -> None:
        argv = [str(python), "-m", "benchmarks.alfworld_upstream.play_games"]
        self._process = subprocess.Popen(
            [*argv, *(["--memoised"] if memoised else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def __enter__(self) -> Upstream:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def play(
        self, rules: Rules, problem: str, task: str, episodes: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        """The program's answer (see `play_games.py`). Raises RuntimeError when it has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        request = {"domain": rules.domain, "grammar": rules.grammar, "problem": problem,
                   "task": task, "episodes": episodes}  # fmt: skip
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError("TextWorld has ended; what it said stands above")
        found: dict[str, Any] = json.loads(answer)
        return found
