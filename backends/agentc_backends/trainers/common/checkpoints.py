"""Resumable checkpoints in the job's work folder: which one is whole, and which to forget.

The training library writes a checkpoint file by file; a mark written last tells a whole one from
one that was cut off.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

_MARK = "complete"
_STEP = re.compile(r"\d+$")


def newest_whole(folder: Path, pattern: str) -> Path | None:
    """The newest whole checkpoint of those that match; removes those that are not whole."""
    whole: list[Path] = []
    for path in folder.glob(pattern):
        if (path / _MARK).exists():
            whole.append(path)
        else:
            shutil.rmtree(path)
    return max(whole, key=step_of, default=None)


def mark_whole(checkpoint: Path) -> None:
    """Declare a checkpoint whole, once its files are on the disk."""
    for path in (*checkpoint.rglob("*"), checkpoint):
        if path.is_file() or path == checkpoint:
            _sync(path)
    (checkpoint / _MARK).touch()
    _sync(checkpoint)


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was saved: the number that ends its name."""
    found = _STEP.search(checkpoint.name)
    assert found is not None, checkpoint.name
    return int(found.group())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
