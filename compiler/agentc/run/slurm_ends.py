"""Ends of SLURM jobs, from the run that saw them in the queue to the Snakemake that it started: a
file between slurm_watch.py and slurm_plugin.py."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

ENDS = "--slurm-ends"
"""Argument of light_snakemake.py that names the file."""


class EndsFile:
    """States of ended jobs by number, written by the run and read by its Snakemake."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, str] = {}
        self._stamp: tuple[int, int] | None = None

    def add(self, ends: Mapping[str, str]) -> bool:
        """Write these ends, with those that were written before; False where the disk takes no
        more. Snakemake's own look is a little later then."""
        self._known = {**self._known, **ends}
        try:
            self._write()
        except OSError:
            return False
        return True

    def _write(self) -> None:
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        draft.write_text(json.dumps(self._known, sort_keys=True), encoding="utf-8")
        draft.replace(self.path)

    def read(self) -> dict[str, str]:
        """What is there now."""
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self._stamp:
                self._known = dict(json.loads(self.path.read_text(encoding="utf-8")))
                self._stamp = stamp
        except (OSError, ValueError):
            return {}
        return self._known
