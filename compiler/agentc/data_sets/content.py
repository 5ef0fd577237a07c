"""What a folder holds, compared with what a data set is known by.

Files are known by what is in them, decompressed: packers of two machines may compress differently.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentc.backend_api import DataSet

_OPENERS: Mapping[str, Callable[..., Any]] = {"": open, ".xz": lzma.open, ".gz": gzip.open}
_CHUNK = 1 << 20


def differences(data_set: DataSet, folder: Path) -> tuple[str, ...]:
    """What a folder lacks or has otherwise, a line each; none: it holds the data set. Further files
    do not matter."""
    if not folder.is_dir():
        return (f"{folder} is no folder",)
    lines = []
    for name, wanted in data_set.contents.items():
        forms = [suffix for suffix in _OPENERS if (folder / (name + suffix)).is_file()]
        if not forms:
            lines.append(f"{name} is not there")
        for suffix in forms:
            found = _digest(folder / (name + suffix), suffix)
            if found is None:
                lines.append(f"{name}{suffix} cannot be read")
            elif found != wanted:
                lines.append(f"{name}{suffix} holds {found[:16]}..., not {wanted[:16]}...")
    return tuple(lines)


def _digest(path: Path, suffix: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with _OPENERS[suffix](path, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except (OSError, EOFError, lzma.LZMAError):
        return None
    return digest.hexdigest()
