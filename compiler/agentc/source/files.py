"""Files that a spec names: which of this machine it may name, how they are read within limits, and
what lies near one that is missing.
"""

from __future__ import annotations

import errno
import os
import re
import select
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from agentc.diagnostics.suggest import distance

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What a spec may cost to read. `nodes` counts after alias expansion."""

    file_bytes: int = 512 * 1024
    depth: int = 40
    nodes: int = 200_000
    aliases: int = 1_000
    scalar_characters: int = 128 * 1024
    key_characters: int = 256


SPEC_LIMITS = ReadLimits()


# Boundary: which files of this machine a spec may name.
#
# A spec is untrusted text until proven otherwise: what it names has to lie in its own folder,
# links followed, or under a directory that the person who runs agentc allows (`--allow-path`).

VARIABLE = "AGENTC_ALLOW_PATH"
"""Directories that specs may name, separated like those of PATH."""
CODE_VARIABLE = "AGENTC_ALLOW_CODE"
"""Directories from which backends that a spec brings along may be run, separated alike."""


class OutsideError(Exception):
    """A path that leads out of the boundary. `written` is as in the spec, `place` where it leads
    (a link inside of a directory may lead elsewhere than the directory itself)."""

    def __init__(self, written: str, place: Path) -> None:
        super().__init__(f"{written} lies outside of what the spec may name")
        self.written, self.place = written, place


@dataclass(frozen=True, slots=True)
class Boundary:
    """`directory` is the spec's folder, where relative paths start. `model_folders` are those of
    the user's configuration, where paths of models start that lead nowhere from the spec."""

    directory: Path
    allowed: tuple[Path, ...] = ()
    model_folders: tuple[Path, ...] = ()

    def find(self, written: str) -> Path:
        """Where a path of the spec leads. Raises OutsideError, also for what is no path."""
        try:
            path = self.directory / Path(written).expanduser()
            if not self.holds(path):
                raise OutsideError(written, path.resolve())
        except (OSError, ValueError, RuntimeError):  # a null character, a circle of links, no home
            raise OutsideError(written, Path(written)) from None
        return path

    def find_model(self, written: str) -> Path:
        """Where the path of a model leads: from the spec, or from the first model folder that has
        it. Raises OutsideError."""
        if not os.path.isabs(written) and not written.startswith((".", "~")):  # noqa: PTH117
            for folder in (self.directory, *self.model_folders):
                place = folder / written
                if (is_directory(place) or is_file(place)) and self.holds(place):
                    return place
        return self.find(written)

    def holds(self, path: Path) -> bool:
        """Whether a path lies inside, with links followed."""
        real = path.resolve()
        roots = (self.directory, *self.allowed, *self.model_folders)
        return any(real.is_relative_to(root.resolve()) for root in roots)


def allowed_paths(
    given: Iterable[str] = (), environment: Mapping[str, str] = os.environ
) -> tuple[Path, ...]:
    """The directories of `--allow-path` and of AGENTC_ALLOW_PATH."""
    return _listed(given, environment.get(VARIABLE, ""))


def allowed_code(
    given: Iterable[str] = (), environment: Mapping[str, str] = os.environ
) -> tuple[Path, ...]:
    """The directories of `--allow-code` and of AGENTC_ALLOW_CODE. Those of `--allow-path` are not
    among them: to let a model be read is not to let code run."""
    return _listed(given, environment.get(CODE_VARIABLE, ""))


def _listed(given: Iterable[str], variable: str) -> tuple[Path, ...]:
    texts = (*given, *variable.split(os.pathsep))
    return tuple(Path(text).expanduser() for text in texts if text)


# What lies where a spec names a file that is not there: a folder, or a file of nearly that name.
#
# Only names within the boundary of the spec are read, and a bounded number of them.

_MOST_NAMES = 500


def nearest_file(written: str, boundary: Boundary) -> str | None:
    """The path, as a spec would have it, of the file that was probably meant: each part that does
    not exist is replaced by the nearest name beside it. A folder leads to its only file; a lone
    name is also looked for one folder below."""
    try:
        place = boundary.find(written)
    except OutsideError:
        return None
    if is_directory(place):
        files = [name for name in _names(place) if is_file(place / name)]
        return str(PurePath(written) / files[0]) if len(files) == 1 else None
    return _nearest_path(written, boundary, is_file) or _below(written, boundary)


def nearest_folder(written: str, boundary: Boundary) -> str | None:
    """The same of a folder: a lone name is not looked for anywhere else."""
    return _nearest_path(written, boundary, is_directory)


def _nearest_path(written: str, boundary: Boundary, is_meant: Callable[[Path], bool]) -> str | None:
    try:
        folder = boundary.find(str(PurePath(written).anchor or "."))
    except OutsideError:
        return None
    found = PurePath(PurePath(written).anchor)
    for part in PurePath(written).parts[1 if found.anchor else 0 :]:
        name = part if os.path.lexists(folder / part) else _nearest(part, folder)
        if name is None:
            return None
        folder, found = folder / name, found / name
    return str(found) if is_meant(folder) and boundary.holds(folder) else None


def is_folder(written: str, boundary: Boundary) -> bool:
    """Whether a path of the spec leads to a folder."""
    try:
        return is_directory(boundary.find(written))
    except OutsideError:
        return False


def _below(written: str, boundary: Boundary) -> str | None:
    """A file of exactly that name in one folder beside the spec."""
    if len(PurePath(written).parts) != 1:
        return None
    for name in _names(boundary.directory):
        if is_file(boundary.directory / name / written) and boundary.holds(
            boundary.directory / name / written
        ):
            return str(PurePath(name) / written)
    return None


def _nearest(part: str, folder: Path) -> str | None:
    word = part.lower()
    limit = 1 if len(word) <= 4 else 2 if len(word) <= 8 else 3
    near = ((distance(word, name.lower(), limit), name) for name in _names(folder))
    best = min(near, default=(limit + 1, ""))
    return best[1] if best[0] <= limit else None


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in islice(entries, _MOST_NAMES)]
    except (OSError, ValueError):
        return []
    return sorted(name for name in names if not name.startswith("."))
