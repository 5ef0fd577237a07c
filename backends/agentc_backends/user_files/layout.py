"""Writes the files of a user's program into the folder where it starts. Standard library only,
Python 3.8: it runs in whatever software a spec names."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_files(folder: Path, files: Iterable[Mapping[str, str]]) -> Path:
    """The folder that a program starts in, with its files and nothing else; made anew."""
    shutil.rmtree(str(folder), ignore_errors=True)
    folder.mkdir(parents=True)
    for file in files:
        place = folder / file["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        # As it was: no line end is translated.
        place.write_bytes(file["text"].encode("utf-8"))
    return folder
