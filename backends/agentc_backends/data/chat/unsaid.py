"""What of a hidden text nobody says who has not seen it: its runs of characters, but for the lines
that begin a function. Whoever is asked to write one is told its signature.

Used where somebody may have repeated a hidden text: `hidden_texts.py`, ColBench's guard.
"""

from __future__ import annotations

import re

_SIGNATURE = re.compile(
    r"^[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\((?:[^()]|\([^()]*\))*\)[^:\n]*:",
    re.MULTILINE,
)


def unsaid_runs(text: str, size: int, told: str = "") -> tuple[int, frozenset[str]]:
    """How long a run is, and all of them: `size` characters, or all of a shorter text. Runs that
    also stand in a signature or in `told`, which are no secrets, are none."""
    parts = [part.strip() for part in _SIGNATURE.split(text)]
    told = "\n".join([told, *_SIGNATURE.findall(text)])
    size = min(size, max(map(len, parts)))
    if not size:
        return 0, frozenset()
    starts = ((part, start) for part in parts for start in range(len(part) - size + 1))
    runs = {part[start : start + size] for part, start in starts}
    return size, frozenset(run for run in runs if run not in told)
