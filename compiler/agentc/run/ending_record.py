"""How SLURM ended a job of a run, kept beside the job's status.json until its next attempt: number,
SLURM's word, cause and remedy. Neighbours: slurm_endings.py (writes), observe.py (shows)."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentc.program.job import write_json

FILE = "ending.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmEnding:
    """`state` is SLURM's word, or one of slurm_endings.py; `sentence` names job and state."""

    number: str
    state: str
    sentence: str
    cause: str
    remedy: str = ""


def write_ending(staging: Path, ending: SlurmEnding) -> None:
    """Keep it; a disk that is full or gone must not end the run that says so on its terminal."""
    with suppress(OSError):
        staging.mkdir(parents=True, exist_ok=True)
        value = asdict(ending)
        if read_dated(staging / FILE)[0] != value:
            write_json(staging / FILE, value)


def read_ending(staging: Path) -> tuple[SlurmEnding | None, float]:
    """What is there, and when it was written."""
    value, dated = read_dated(staging / FILE)
    try:
        return (SlurmEnding(**value), dated) if value else (None, 0.0)
    except TypeError:  # of another version
        return None, 0.0


def read_dated(path: Path) -> tuple[dict[str, Any], float]:
    """An object of JSON and when its file was written; ({}, 0) where there is none."""
    try:
        with path.open(encoding="utf-8") as file:
            dated = os.fstat(file.fileno()).st_mtime
            value = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}, 0.0
    return (value, dated) if isinstance(value, dict) else ({}, 0.0)
