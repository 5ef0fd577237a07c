"""Reads a file that a person named: whatever its path leads to, this ends soon, with the bytes or
with words.

A path may be empty (an unset variable of the shell), go round in links, be too long, or be a pipe:
that of `agentc check <(make spec)` is read, one into which nobody writes is given up.
"""

from __future__ import annotations

import errno
import os
import re
import select
import stat
import time
from pathlib import Path

_WRITER_S = 1.0
"""How long a pipe may be without a program that writes into it."""
_DATA_S = 60.0
"""How long one that has such a program may be without data."""
_MOST_FILES = 200
_MOST_NAMED = 10
_PIECE = 64 * 1024
_POLL_S = 0.02


class UnreadableError(Exception):
    """Why a file cannot be read, as the end of "cannot read X: "."""


def read_named(path: Path, most: int) -> bytes:
    """The first `most` bytes of a file. Raises UnreadableError."""
    if not path.name and path == Path():
        raise UnreadableError("the path is empty, or the current folder")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISFIFO(os.fstat(handle).st_mode):
                return _from_pipe(handle, most)
            os.set_blocking(handle, True)
            with os.fdopen(handle, "rb", closefd=False) as stream:
                return stream.read(most)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError("its links lead in a circle") from None
        reason = error.strerror or type(error).__name__
        raise UnreadableError(reason.lower()) from None
    except ValueError:
        raise UnreadableError("the path holds a null character") from None


def _from_pipe(handle: int, most: int) -> bytes:
    """What is written into a pipe. An end without data means that nobody writes yet, or anew."""
    data = bytearray()
    give_up = time.monotonic() + _WRITER_S
    while len(data) < most:
        try:
            piece = os.read(handle, min(_PIECE, most - len(data)))
        except BlockingIOError:
            ready, _, _ = select.select([handle], [], [], _DATA_S)
            if not ready:
                raise UnreadableError(f"the pipe has been silent for {_DATA_S:.0f} s") from None
            continue
        data += piece
        if not piece:
            if data:
                break
            if time.monotonic() > give_up:
                raise UnreadableError("it is a pipe, and nothing was written into it")
            time.sleep(_POLL_S)
    return bytes(data)


def folder_of(path: Path) -> Path:
    """The folder where relative paths in a file start, links followed; never raises."""
    try:
        return path.resolve().parent
    except (OSError, RuntimeError, ValueError):  # a circle of links, a null character
        return path.absolute().parent


def is_directory(path: Path) -> bool:
    """Whether a path leads to a folder; `Path.is_dir` raises for one that is too long."""
    return os.path.isdir(path)  # noqa: PTH112


def specs_in(folder: Path) -> list[str]:
    """Names of the YAML files of a folder that have the key `agentc`; the first ten."""
    found: list[str] = []
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - no more of each is needed
    except OSError:
        return []
    for name in [name for name in names if name.endswith((".yaml", ".yml"))][:_MOST_FILES]:
        if len(found) == _MOST_NAMED:
            break
        try:
            data = read_named(folder / name, _PIECE) if is_file(folder / name) else b""
        except UnreadableError:
            continue
        if re.search(rb"^agentc[ \t]*:", data, re.MULTILINE):
            found.append(name)
    return found


def is_file(path: Path) -> bool:
    """Whether a path leads to a file; `Path.is_file` raises for one that is too long."""
    return os.path.isfile(path)  # noqa: PTH113
