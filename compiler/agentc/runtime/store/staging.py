"""The staging directory of a job, its attempts, and publishing: one atomic rename makes the object.

What is staged survives kills and requeues. Whatever kills the wrapper, the object is there whole or
not at all; so it is where a file server answers an error to a rename that it carried out.
"""

from __future__ import annotations

import binascii
import errno
import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import FACTS_FILE, PROGRESS_FILE
from agentc.program.job import read_json, write_json
from agentc.runtime.contracts.artifacts import PRIVATE
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.store.digests import VERSION, manifest_text, sha256_of, shape_of
from agentc.runtime.store.file_system import visibility_timeout, writing
from agentc.runtime.store.layout import MANIFEST, StoreLayout, seal
from agentc.runtime.store.object_lock import LostClaimError, ObjectLock

CUT_OFF = "it was cut off: its wrapper was killed, or its node was lost"
_MOST = 50


class Attempts:
    """`attempts.jsonl`: a line for each beginning, one for each end that was seen."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self) -> None:
        """An attempt begins, here and now."""
        line = {"began": time.time(), "host": os.uname().nodename}
        if "SLURM_JOB_ID" in os.environ:
            line["slurm"] = os.environ["SLURM_JOB_ID"]
        self._add(line)

    def end(self, because: str) -> None:
        """The attempt came to nothing, for this reason."""
        self._add({"ended": time.time(), "because": because.splitlines()[0][:500]})

    def past(self) -> list[dict[str, Any]]:
        """Every attempt but the one that goes on, the latest fifty: `{"began", "host", "slurm"?,
        "ended"?, "because"}`."""
        found: list[dict[str, Any]] = []
        for line in self._lines():
            if "began" in line:
                found.append(line)
            elif found and "because" not in found[-1]:
                found[-1].update(line)
        return [{"because": CUT_OFF, **attempt} for attempt in found[:-1]][-_MOST:]

    def _lines(self) -> list[dict[str, Any]]:
        found = []
        with suppress(OSError):
            for text in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError):  # a line that a kill cut off
                    line = json.loads(text)
                    if isinstance(line, dict):
                        found.append(line)
        return found

    def _add(self, line: dict[str, Any]) -> None:
        # What it costs to be without: a reason. A full disk must not fail the job for that.
        with suppress(OSError), self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n")


STATES = ("waiting", "software", "leases", "running", "checking", "published", "failed")


def submission(environ: Mapping[str, str]) -> str | None:
    """SLURM's number of this job as its queue writes it: `7`, or `7_2` for a task of an array,
    which has a number of its own besides."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else environ.get("SLURM_JOB_ID")


class Staging:
    """`staging/<kind>/<key>/`; only the holder of the object's lock may use it."""

    def __init__(self, layout: StoreLayout, name: str) -> None:
        self.name = name
        self.path = layout.staging(name)
        self.data = self.path / "data"
        self.work = self.path / "work"
        self.logs = self.path / "logs"
        self.log = self.logs / "log.txt"
        self.job_file = self.path / "job.json"
        self.facts_file = self.path / FACTS_FILE
        self.progress_file = self.path / PROGRESS_FILE
        self.account_file = self.path / "account.json"
        """The identity of the environment that the program opened in its own process."""
        self.status_file = self.path / "status.json"
        self.imported = self.path / "imported"
        self.publish = self.path / "publish"
        self.history = Attempts(self.path / "attempts.jsonl")
        self.attempts = 0
        self.warning = ""
        self.log_begins = 0
        """Where this attempt begins in log.txt; where that ends until its program is started."""
        self._mark = ""
        self._id = name

    def previous_mark(self) -> str | None:
        """The mark of the processes of an earlier attempt, when there was one."""
        found = read_json(self.status_file).get("mark")
        return found if isinstance(found, str) else None

    def prepare(self, job_id: str, mark: str, keep_data: bool) -> None:
        """Make the directories; `data/` is emptied unless `keep_data`."""
        self._id, self._mark = job_id, mark
        with writing("the staged work of " + self.name, self.path):
            self._prepare(keep_data)

    def _prepare(self, keep_data: bool) -> None:
        attempts = read_json(self.status_file).get("attempts")
        self.attempts = attempts if isinstance(attempts, int) else 0
        self.log_begins = self._log_size()
        unpublished = self.publish / "data"
        if unpublished.is_dir() and not self.data.exists():
            unpublished.rename(self.data)
        remove_tree(self.publish)
        for folder in (self.data, self.work, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        if not keep_data:
            self.empty_data()

    def empty_data(self) -> None:
        """Forget what an earlier attempt wrote; `work/` stays."""
        remove_tree(self.data)
        self.data.mkdir()

    def begin_attempt(self, job: dict[str, Any]) -> None:
        """Write job.json and count the attempt."""
        self.attempts += 1
        self.log_begins = self._log_size()
        self.history.begin()
        ending = self.path / "ending.json"  # how SLURM ended an attempt before this one
        for stale in (self.facts_file, self.progress_file, self.account_file, ending):
            if stale.exists():
                stale.unlink()
        remove_tree(self.imported / "program")
        # The file holds the tokens of this run's servers; one of another user cannot be opened.
        with suppress(FileNotFoundError):
            self.job_file.unlink()
        descriptor = os.open(str(self.job_file), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            json.dump(job, out, ensure_ascii=False, sort_keys=True, indent=1)

    def _log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def facts(self) -> dict[str, Any]:
        """What the program reported."""
        return read_json(self.facts_file)

    def progress(self) -> dict[str, Any]:
        """The program's last progress line."""
        return read_json(self.progress_file)

    def status(self, state: str, message: str = "", out_of_time: bool = False) -> None:
        """Tell the world what the wrapper is doing (contracts.md, section 7)."""
        assert state in STATES, state
        late = {"out_of_time": True, "slurm": submission(os.environ)} if out_of_time else {}
        value = {
            "state": state,
            "time": time.time(),
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "message": message,
            "id": self._id,
            "attempts": self.attempts,
            "log_begins": self.log_begins,
            "mark": self._mark,
            **({"warning": self.warning} if self.warning else {}),
            **late,
        }
        # A full disk must not hide what there is to say; the wrapper says it too.
        with suppress(OSError):
            write_json(self.status_file, value)

    def remove(self) -> None:
        """The object is published: nothing here is needed any more. What cannot be removed now
        (files that are open on a network file system stay under other names) is left to gc."""
        shutil.rmtree(str(self.path), ignore_errors=True)


def attempt_begins(log: Path) -> int:
    """Where in a job's log (`logs/log.txt`) its last attempt begins. The log is appended over
    attempts, and the words of an earlier one are no cause of the last failure."""
    begins = read_json(log.parents[1] / "status.json").get("log_begins")
    return begins if isinstance(begins, int) else 0


def remove_tree(path: Path) -> None:
    """Remove a directory if it is there; what the file server keeps, because somebody has it
    open, is put out of the way."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        try:
            shutil.rmtree(str(path))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EBUSY, errno.ESTALE):
                raise
            aside = ".gone-" + binascii.hexlify(os.urandom(6)).decode("ascii")
            path.rename(path.with_name(aside))


_CHUNK = 1 << 20
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)
_RENAMES = 5


def publish(
    layout: StoreLayout,
    staging: Staging,
    manifest: Mapping[str, Any],
    redactor: Redactor,
    claim: ObjectLock | None = None,
) -> None:
    """Turn a staged job into the object. The caller holds the claim, and nobody writes to the
    staging directory any more. Raises StoreWriteError, and LostClaimError when the claim was
    taken over meanwhile."""
    whole = staging.publish
    with writing("the object " + staging.name, staging.path):
        remove_tree(whole)
        whole.mkdir()
        staging.data.rename(whole / "data")
        if staging.logs.is_dir():
            staging.logs.rename(whole / "logs")
        value = {**manifest, "manifest": VERSION, **shape_of(whole), "files": hash_files(whole)}
        value = json.loads(redactor.clean_text(json.dumps(value, ensure_ascii=False)))
        text = manifest_text(value)
        with (whole / MANIFEST).open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        seal(layout, whole, manifest.get("type") in PRIVATE)
        for folder, _, _ in os.walk(str(whole)):
            _sync_directory(Path(folder))
    if claim is not None and not claim.is_mine():
        raise LostClaimError(claim.name)
    target = layout.object(staging.name)
    with writing("the object " + staging.name, target.parent):
        _make_folder(target.parent)
        _put_in_place(whole, target, text, staging.path / "torn")
        _sync_directory(target.parent)
    if claim is not None and visibility_timeout(layout) > 0:
        claim.note_published()
    staging.remove()


def _put_in_place(whole: Path, target: Path, text: str, torn: Path) -> None:
    """Rename, until the object is there, ours or that of another with the same key."""
    for left in reversed(range(_RENAMES)):
        try:
            whole.rename(target)
            return
        except OSError as error:
            if _holds(target / MANIFEST, text):
                return  # carried out; the reply was lost, and the second try found nothing
            taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
            if left == 0 or not (taken or error.errno == errno.ESTALE):
                raise
        if (target / MANIFEST).exists():
            return
        if taken:
            # Without a manifest it is no object: somebody removed a part of it by hand.
            remove_tree(torn)
            target.rename(torn)


def _make_folder(path: Path) -> None:
    """With its entries in the folders above synced: what lies in a folder whose own name a power
    cut takes is lost."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    with suppress(FileExistsError):
        path.mkdir()
    _sync_directory(path.parent)


def _holds(manifest: Path, text: str) -> bool:
    try:
        return manifest.read_text(encoding="utf-8") == text
    except OSError:
        return False


def hash_files(folder: Path) -> dict[str, str]:
    """Sha256 of every file under a folder, by relative path; each is synced to the disk."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[path.relative_to(folder).as_posix()] = sha256_of(path, sync=True)
    return found


def _sync_directory(path: Path) -> None:
    descriptor = os.open(str(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:  # some file systems cannot, and need not
            raise
    finally:
        os.close(descriptor)
