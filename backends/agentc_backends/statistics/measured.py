"""What a stage measured, as comparisons and claims read it: the metrics of an evaluation, what the
rows of a revision say of its tasks (`revisions.py`), with the rules of its judge, or the curve of
a run of RL (`passages.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentc.program.job import read_rows
from agentc_backends.statistics.revisions import revision_metrics

JUDGED_BY = "judged_by.json"
"""Beside the rows of a revision that asked a judge: its `protocol`, as an evaluation has one."""


def read_metrics(folder: Path) -> dict[str, Any]:
    """Of the artifact in a folder; the compiler lets nobody mix evaluations, revisions and runs."""
    if (folder / "curve.jsonl").exists():
        return {"curve": read_rows(folder / "curve.jsonl")}
    if not (folder / "rows.jsonl").exists():
        return _json(folder / "metrics.json")
    rules = folder / JUDGED_BY
    protocol = {"protocol": _json(rules)} if rules.exists() else {}
    return {**revision_metrics(read_rows(folder / "rows.jsonl")), **protocol}


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
