"""Legal actions that were found once, kept for all episodes of a server and for servers to come.

They are a function of a state's canonical form (`machine.py`), so what was found anywhere holds.
The file lies in the user's cache folder, a line for each state; without one, or where it cannot be
written, every server finds them anew.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

MOST_KEPT = 50_000
"""States that are kept, the last used ones; about 15 MB in a file."""


def file_for(name: str) -> Path:
    """Where a user's caches lie; `name` says what the content is a function of."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "agentc", "legal_actions", f"{name}.jsonl")


class Remembered:
    """Legal actions by key; any thread may ask."""

    def __init__(self, file: Path | None, most_kept: int = MOST_KEPT) -> None:
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
                # A line that was cut off, by a full disk say, is one that is found anew.
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
