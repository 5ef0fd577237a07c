"""Reads an action as the legal one that it is closest to, as Agent-R does for ScienceWorld."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPECIAL = re.compile(r"[^A-Za-z0-9 ]")


def snap(action: str, legal: Sequence[str]) -> str:
    """The action itself where it is legal or a number (an answer to "which one do you mean?"),
    else the legal action that shares most words with it, the shortest of several. An action that
    shares no word with any stays as it is."""
    plain = " ".join(_SPECIAL.sub(" ", action).lower().split())
    for exact in (action.strip(), plain):
        if exact in legal or exact.isdigit():
            return exact
    words = set(plain.split())

    def fit(candidate: str) -> tuple[int, int, str]:
        shared = len(words & set(_SPECIAL.sub(" ", candidate).lower().split()))
        return (-shared, len(candidate), candidate)

    best = min(legal, key=fit, default=action)
    return best if best != action and fit(best)[0] < 0 else action
