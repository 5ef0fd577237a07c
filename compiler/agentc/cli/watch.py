"""`agentc check --watch`: check again whenever a file that the spec reads changes.

Files are polled by path: editors replace a file rather than write into it, which watchers of
inodes lose, and network file systems report nothing at all. A spec reads few files.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NoReturn, TypeAlias

from agentc.runtime.machine.output_filters import unguarded

INTERVAL_S = 0.15
GONE_S = 1.0
"""How long a file may be away before that is news: some editors delete and then write."""
CLOCK_S = 0.05
"""How far the times of files may lag behind the clock."""

_CLEAR = "\x1b[2J\x1b[H"
_Mark: TypeAlias = tuple[object, ...] | None
_State: TypeAlias = dict[Path, _Mark]


def watch(spec: Path, check: Callable[[], Iterable[Path]], *, clear: bool) -> NoReturn:
    """Call `check` now and after every change of the files that it says it read (of a folder: the
    names of the YAML files in it), until Ctrl-C, whose KeyboardInterrupt goes to the caller.
    `clear` empties the terminal before each."""
    known = _look([spec])
    while True:
        if clear:
            print(_CLEAR, end="", flush=True, file=unguarded(sys.stdout))
        started = time.time()
        # Editors match these two lines (docs/editors.md).
        _tell(f"checking {spec}")
        known = _after(known, check(), started)
        files = "1 file" if len(known) == 1 else f"{len(known)} files"
        sys.stdout.flush()
        _tell(f"watching {files}; Ctrl-C ends")
        known = _changed(known)


def _tell(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def _after(before: Mapping[Path, _Mark], files: Iterable[Path], started: float) -> _State:
    """What the check saw: what was there before it, so that a change made meanwhile still counts.
    A file seen for the first time that was written meanwhile counts as changed too."""
    state: _State = {}
    for file in dict.fromkeys(files):
        mark = before[file] if file in before else _mark(file)
        fresh = file not in before and mark is not None and _written(file) > started - CLOCK_S
        state[file] = () if fresh else mark
    return state


def _changed(known: _State) -> _State:
    """Waits until something differs from `known`, and then until it stays as it is."""
    now = _look(known)
    while now == known:
        time.sleep(INTERVAL_S)
        now = _look(known)
    since = time.monotonic()
    while True:
        time.sleep(INTERVAL_S)
        later = _look(known)
        away = any(later[file] is None and known[file] is not None for file in known)
        if later == now and (not away or time.monotonic() - since > GONE_S):
            return now
        now = later


def _look(files: Iterable[Path]) -> _State:
    return {file: _mark(file) for file in files}


def _mark(path: Path) -> _Mark:
    """Something that differs when the file does; None when there is none."""
    try:
        if path.is_dir():
            return tuple(sorted(p.name for p in path.iterdir() if p.suffix in (".yaml", ".yml")))
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
