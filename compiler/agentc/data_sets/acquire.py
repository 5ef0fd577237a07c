"""Gets a data set: download, unpack, convert, check; then one rename, so that a folder which is
there is whole. All happens in `<folder>.fetching`, which a refusal deletes and a broken line does
not.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentc.backend_api import DataSet, DataSource
from agentc.data_sets.content import differences
from agentc.data_sets.download import RefusedError, Report, download
from agentc.data_sets.unpack import UnpackError, unpack
from agentc.runtime.store.digests import sha256_of

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
            (out / ORIGIN).write_text(json.dumps(origins, indent=1) + "\n")
            out.rename(folder)
        except (AcquireError, UnpackError, RefusedError) as error:
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
