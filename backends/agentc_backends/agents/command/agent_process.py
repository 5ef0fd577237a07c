"""Runs the user's program for one episode, in a folder of its own, and ends it with all that it
started. Neighbour: `play.py`, which says what it is told."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.program.child import die_with_parent
from agentc_backends.user_files.layout import lay_out

EPISODE = "AGENTC_EPISODE"
"""Holds the path of the JSON file that tells a program of its episode."""
_TAIL = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """What is run: `words`, or the first of `files` by this Python. `hidden` variables are not its:
    they hold secrets."""

    words: Sequence[str]
    python: bool
    files: Sequence[Mapping[str, str]]
    hidden: frozenset[str]
    longest_s: float

    async def run(
        self, folder: Path, told: Mapping[str, Any], own: Mapping[str, str]
    ) -> str | None:
        """None where it ended well, else a sentence. `told` is what the file holds, `own` variables
        of the episode. The folder is gone afterwards."""
        try:
            return await self._run(folder, told, own)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _run(
        self, folder: Path, told: Mapping[str, Any], own: Mapping[str, str]
    ) -> str | None:
        place = lay_out(folder / "files", self.files)
        episode = folder / "episode.json"
        episode.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
        words = [*self.words]
        if self.python:
            words = [sys.executable, self.files[0]["path"], str(episode)]
        me = os.getpid()
        log = folder / "log.txt"
        with log.open("wb") as out:
            try:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    cwd=place,
                    env=self._variables({**own, EPISODE: str(episode)}),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
                )
            except OSError as error:
                return f"cannot start {words[0]}: {error}"
            try:
                status = await asyncio.wait_for(process.wait(), self.longest_s)
            except asyncio.TimeoutError:
                return f"its program did not end within {self.longest_s:g} s"
            finally:
                # What it started beside itself ends with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if status == 0:
            return None
        ended = f"exit status {status}" if status > 0 else signal.Signals(-status).name
        said = log.read_bytes()[-_TAIL:].decode("utf-8", "replace").strip()
        return f"its program ended with {ended}: {said or 'it said nothing'}"

    def _variables(self, own: Mapping[str, str]) -> dict[str, str]:
        variables = {n: value for n, value in os.environ.items() if n not in self.hidden}
        # A program finds the modules beside it, as it does when it is run by hand.
        variables.pop("PYTHONSAFEPATH", None)
        return {**variables, "PYTHONDONTWRITEBYTECODE": "1", **own}
