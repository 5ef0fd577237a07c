"""Processes that interpret the game, lent for one request at a time; none keeps an episode.

An episode's state travels with each request, so a process that hangs or dies voids the request
that it was busy with, and nothing else. Neighbours: `interpreter.py` (what runs in them),
`environment.py`.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc_backends.environments.server.environment import EnvironmentFailure

_GRACE_SECONDS = 5.0
_START_SECONDS = 300.0
_BLOCK = 1 << 16


class Interpreters:
    """At most `processes` at a time, started when they are needed and replaced when they end."""

    def __init__(
        self,
        file: Path,
        scratch: Sequence[tuple[int, int]],
        *,
        processes: int,
        limit_s: float,
        python: str = sys.executable,
    ) -> None:
        # Where a game writes the files that it is told to.
        self._scratch = tempfile.mkdtemp(prefix="agentc-detective-")
        self._argv = [
            python, "-m", "agentc_backends.environments.detective.interpreter",
            str(file.absolute()), "--folder", self._scratch, "--limit", str(limit_s),
            "--scratch", ",".join(f"{start}-{end}" for start, end in scratch),
        ]  # fmt: skip
        self._limit_s = limit_s
        self._idle: list[_Process] = []
        self._running: set[_Process] = set()
        self._places = threading.Semaphore(processes)
        self._lock = threading.Lock()
        self._closed = False
        process = self._take()
        self.facts: Mapping[str, Any] = process.facts
        self._idle.append(process)

    @property
    def pids(self) -> list[int]:
        with self._lock:
            return [process.pid for process in self._running]

    def ask(self, do: str, state: str, command: str = "") -> dict[str, Any]:
        """The answer to a request. Raises EnvironmentFailure, and ValueError for a state that is
        none."""
        with self._places:
            process = self._take()
            try:
                answer = process.ask({"do": do, "state": state, "command": command}, self._limit_s)
            except BaseException:
                self._drop(process)
                raise
            with self._lock:
                self._idle.append(process)
        if "bad_state" in answer:
            raise ValueError(answer["bad_state"])
        return answer

    def close(self) -> None:
        """End every process."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            self._drop(process)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _take(self) -> _Process:
        with self._lock:
            if self._closed:
                raise EnvironmentFailure("the interpreters are being stopped")
            if self._idle:
                return self._idle.pop()
        process = _Process(self._argv)
        with self._lock:
            self._running.add(process)
        return process

    def _drop(self, process: _Process) -> None:
        process.end()
        with self._lock:
            self._running.discard(process)


class _Process:
    """One interpreter, and the facts that it tells first."""

    def __init__(self, argv: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise EnvironmentFailure(f"the game's interpreter does not start: {error}") from error
        self._rest = b""
        self.facts = self._read(_START_SECONDS, "the game could not be loaded")

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EnvironmentFailure("the game's interpreter has ended") from error
        what = f"to {request['command']!r}" if request["command"] else f"({request['do']})"
        return self._read(
            # It ends itself after ten times the limit; see `interpreter.py`.
            10 * limit_s + _GRACE_SECONDS,
            f"the game's interpreter gave no answer {what} within {limit_s:g} seconds of processor "
            "time, or crashed",
        )

    def _read(self, limit_s: float, otherwise: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + limit_s
        # Beside the buffer of `stdout`, which would hide from select what it has read already.
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            ready = select.select([descriptor], [], [], max(0.0, left))[0]
            block = os.read(descriptor, _BLOCK) if ready else b""
            if not block:
                self.end()
                raise EnvironmentFailure(otherwise)
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                # What was not sent yet is nobody's loss.
                with suppress(OSError):
                    pipe.close()
