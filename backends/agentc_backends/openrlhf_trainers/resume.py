"""DeepSpeed's checkpoints in the job's work folder: which one is whole, and which to forget.

DeepSpeed names the newest in a file `latest`, which it writes after the checkpoint's own files but
without waiting for the disk. A mark written last tells a whole one from one that was cut off.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FOLDER = "checkpoints"
_MARK = "complete"


def settle_checkpoints(work: Path) -> int:
    """Keep the newest whole checkpoint only, and let DeepSpeed find it. Its step, 0 for none."""
    folder = work / FOLDER
    if not folder.is_dir():
        return 0
    tags = [path for path in folder.iterdir() if path.is_dir()]
    whole = [path for path in tags if (path / _MARK).exists()]
    newest = max(whole, key=_step, default=None)
    for path in tags:
        if path != newest:
            shutil.rmtree(path)
    latest = folder / "latest"
    if newest is None:
        latest.unlink(missing_ok=True)
        return 0
    latest.write_text(newest.name, encoding="utf-8")
    return _step(newest)


def mark_whole(work: Path, tag: str) -> None:
    """Declare a checkpoint whole, once its files are on the disk."""
    folder = work / FOLDER / tag
    for path in (*folder.rglob("*"), folder):
        if path.is_file() or path == folder:
            _sync(path)
    (folder / _MARK).touch()
    _sync(folder)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("global_step"))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
