"""The game as functions of a state: what a command does, what is seen, which actions are legal; the
cache of legal actions, and the processes that interpret the game (`interpreter.py`)."""

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
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc_backends.environments.server.environment import EnvironmentFailure


@dataclass(frozen=True, slots=True)
class Position:
    """A state of the machine (base64), what it told last, and what a player sees in it."""

    state: str
    text: str
    score: int
    over: bool
    look: str
    inventory: str
    key: str


class DetectiveGame:
    """Answers are the same for the same state, whoever asks."""

    def __init__(self, interpreters: Interpreters, remembered: LegalActionCache) -> None:
        self._interpreters = interpreters
        self._remembered = remembered
        facts = interpreters.facts
        self.points = int(facts["points"])
        self.supported = bool(facts["supported"])
        self.walkthrough = tuple(str(word) for word in facts["walkthrough"])
        self.meta = frozenset(facts["meta"])
        self.letters = int(facts["letters"])
        self.opening = self._position(facts["opening"])

    def act(self, position: Position, command: str) -> Position:
        """Raises EnvironmentFailure."""
        reply = self._interpreters.ask("act", position.state, command)
        if reply["halted"]:
            raise EnvironmentFailure(f"the game's interpreter halted at {command!r}")
        return self._position(reply)

    def resumed(self, state: str, text: str, score: int, *, over: bool) -> Position:
        """A position that was left with this state. Raises ValueError, EnvironmentFailure."""
        return self._position({"state": state, "text": text, "score": score, "over": over})

    def legal(self, position: Position) -> tuple[str, ...]:
        """Actions that change something, sorted; none once the game is over."""
        if position.over:
            return ()
        known = self._remembered.get(position.key)
        if known is None:
            known = self.computed_legal(position)
            self._remembered.put(position.key, known)
        return known

    def computed_legal(self, position: Position) -> tuple[str, ...]:
        """The same, asked of the interpreter each time."""
        return tuple(self._interpreters.ask("legal", position.state)["legal"])

    def _position(self, reply: Mapping[str, Any]) -> Position:
        seen = self._interpreters.ask("see", reply["state"])
        return Position(
            state=reply["state"],
            text=reply["text"],
            score=reply["score"],
            over=reply["over"],
            look=seen["look"],
            inventory=seen["inventory"],
            key=seen["key"],
        )


# Legal actions take a tenth of a second to find, so they are cached for all episodes of a server
# and for later servers. They are a function of a state's canonical form. The file is in the user's
# cache folder, a line for each state; without one, or where it cannot be written, every server
# finds them again.

MAX_CACHED = 50_000
"""States that are kept, the last used ones; about 15 MB in a file."""


def file_for(name: str) -> Path:
    """Where a user's caches lie; `name` says what the content is a function of."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "agentc", "legal_actions", f"{name}.jsonl")


class LegalActionCache:
    """Legal actions by key; any thread may ask."""

    def __init__(self, file: Path | None, most_kept: int = MAX_CACHED) -> None:
        self._file = file
        self._most_kept = most_kept
        self._kept: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._lock = threading.Lock()
        self.asked = self.found = 0
        if file is not None:
            self._read(file)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> tuple[str, ...] | None:
        with self._lock:
            self.asked += 1
            known = self._kept.get(key)
            if known is not None:
                self.found += 1
                self._kept.move_to_end(key)
            return known

    def put(self, key: str, legal: tuple[str, ...]) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._keep(key, legal)
            if self._file is not None:
                # One short write at the end, so that servers at the same time do not mix.
                with suppress(OSError), self._file.open("ab", buffering=0) as file:
                    file.write(_line(key, legal))

    def _keep(self, key: str, legal: tuple[str, ...]) -> None:
        self._kept[key] = legal
        if len(self._kept) > self._most_kept:
            self._kept.popitem(last=False)

    def _read(self, file: Path) -> None:
        lines = 0
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            for line in file.read_bytes().splitlines():
                lines += 1
                # A line that was cut off, by a full disk say, is found again.
                with suppress(ValueError, RecursionError):
                    match json.loads(line):
                        case [str(key), [*legal]] if all(isinstance(one, str) for one in legal):
                            self._keep(key, tuple(legal))
            if lines > 2 * self._most_kept:
                draft = file.with_name(f".{file.name}.{os.getpid()}")
                draft.write_bytes(b"".join(_line(*entry) for entry in self._kept.items()))
                draft.replace(file)


def _line(key: str, legal: tuple[str, ...]) -> bytes:
    return json.dumps([key, legal], separators=(",", ":")).encode() + b"\n"


# Processes are lent for one request at a time; none keeps an episode. An episode's state travels
# with each request, so a process that hangs or dies voids that request and nothing else.

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
            f"the game's interpreter gave no answer {what} within {limit_s:g} seconds of CPU "
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
