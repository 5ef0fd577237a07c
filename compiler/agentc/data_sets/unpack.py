"""Unpacks a stranger's zip into a folder, and never beside it or beyond a bound.

Sizes that the archive claims are not believed: what comes out is counted.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from pathlib import Path, PureWindowsPath

_MOST_FILES = 200_000
_CHUNK = 1 << 20


class UnpackError(ValueError):
    """An archive is broken, or does what no honest one does."""


def unpack(archive: Path, folder: Path, most_bytes: int) -> int:
    """Write the files of a zip under the folder; returns their bytes. Raises UnpackError."""
    left = most_bytes
    try:
        with zipfile.ZipFile(archive) as source:
            members = source.infolist()
            if len(members) > _MOST_FILES:
                raise UnpackError(f"{archive.name} holds over {_MOST_FILES} files")
            for member in members:
                target = folder / _inside(archive, member)
                if member.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                else:
                    left -= _write(source, member, target, left)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        # RuntimeError: encrypted; NotImplementedError: a compression that Python has not.
        raise UnpackError(f"{archive.name} cannot be unpacked: {error}") from None
    return most_bytes - left


def _inside(archive: Path, member: zipfile.ZipInfo) -> str:
    """The member's name, if it is one below the folder, on every system."""
    name = member.filename
    parts = name.rstrip("/").split("/")
    windows = PureWindowsPath(name)
    if (
        "\\" in name
        or windows.drive
        or any(part in ("", ".", "..") for part in parts)
        or any(ord(letter) < 32 for letter in name)
    ):
        raise UnpackError(f"{archive.name} has a file that would lie elsewhere: {name!r}")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UnpackError(f"{archive.name} has {name!r}, which is neither a file nor a folder")
    return name


def _write(source: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, most: int) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    try:
        # "x": no second member of the same name writes over the first one.
        with source.open(member) as packed, target.open("xb") as out:
            while chunk := packed.read(_CHUNK):
                written += len(chunk)
                if written > most:
                    raise UnpackError(f"what {source.filename} holds is larger than it may be")
                out.write(chunk)
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        raise UnpackError(f"{member.filename!r} is in the archive twice") from None
    return written
