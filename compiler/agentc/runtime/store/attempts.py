"""Attempts at a job: when and where each began and why it ended, kept in its staging directory over
kills and requeues, until the manifest tells of those that came to nothing."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

CUT_OFF = "it was cut off: its wrapper was killed, or its node was lost"
_MOST = 50


class Attempts:
    """`attempts.jsonl`: a line for each beginning, one for each end that was seen."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self) -> None:
        """An attempt begins, here and now."""
        line = {"began": time.time(), "host": os.uname().nodename}
        if "SLURM_JOB_ID" in os.environ:
            line["slurm"] = os.environ["SLURM_JOB_ID"]
        self._add(line)

    def end(self, because: str) -> None:
        """The attempt came to nothing, for this reason."""
        self._add({"ended": time.time(), "because": because.splitlines()[0][:500]})

    def past(self) -> list[dict[str, Any]]:
        """Every attempt but the one that goes on, the latest fifty: `{"began", "host", "slurm"?,
        "ended"?, "because"}`."""
        found: list[dict[str, Any]] = []
        for line in self._lines():
            if "began" in line:
                found.append(line)
            elif found and "because" not in found[-1]:
                found[-1].update(line)
        return [{"because": CUT_OFF, **attempt} for attempt in found[:-1]][-_MOST:]

    def _lines(self) -> list[dict[str, Any]]:
        found = []
        with suppress(OSError):
            for text in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError):  # a line that a kill cut off
                    line = json.loads(text)
                    if isinstance(line, dict):
                        found.append(line)
        return found

    def _add(self, line: dict[str, Any]) -> None:
        # What it costs to be without: a reason. A full disk must not fail the job for that.
        with suppress(OSError), self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n")
