"""Resumable checkpoints in the job's work folder: which one is whole, and which to forget.

The training library writes a checkpoint file by file; a mark written last tells a whole one from
one that was cut off.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_MARK = "complete"


def newest_complete(work: Path) -> Path | None:
    """The newest whole checkpoint; removes those that are not."""
    found: list[tuple[int, Path]] = []
    for path in work.glob("checkpoint-*"):
        if (path / _MARK).exists():
            found.append((int(path.name.rsplit("-", 1)[1]), path))
        else:
            shutil.rmtree(path)
    return max(found)[1] if found else None


def mark_complete(work: Path, step: int) -> None:
    """Declare the checkpoint of a step whole, once its files are on the disk."""
    folder = work / f"checkpoint-{step}"
    for path in folder.iterdir():
        _sync(path)
    (folder / _MARK).touch()
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
