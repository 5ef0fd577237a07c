"""What tests of bundles look at: the files of a folder."""

from __future__ import annotations

from pathlib import Path


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
