"""The staging directory of a job at work: what survives a cut-off, and what is told meanwhile."""

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

from agentc.program.job import read_json, write_json
from agentc.runtime.store.attempts import Attempts
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.trouble import writing

STATES = ("waiting", "environment", "leases", "running", "checking", "published", "failed")


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
        self.facts_file = self.path / "facts.json"
        self.progress_file = self.path / "progress.json"
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
