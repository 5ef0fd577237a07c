"""Plans of past runs: the last of an experiment, the different one before it, and those that its
history names."""

from __future__ import annotations

from pathlib import Path

from agentc.kinds.field import Json
from agentc.plan.render import read_document


def read_past(path: Path) -> dict[str, Json] | None:
    """A plan that a run left, or None when there is none that can be read."""
    try:
        return read_document(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
