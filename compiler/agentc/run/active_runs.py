"""Active runs: a record for each `agentc run`, locked and renewed for as long as it lives, and the
folder of its compiled plan, which no other run may replace meanwhile. By the record another
shell cancels a run, and the next run finds what a killed one left in a queue. In a store of
several users each ends only their own."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import pwd
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from agentc.runtime.store.file_system import now_at, visibility_timeout
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.object_lock import FLOCK_VARIABLE, NO_FLOCK
from agentc.store.paths import RunFolder, plans_folder

_RENEW_S = 5.0
_SILENT_S = 60.0
"""Where locks do not reach other machines: a record that old belongs to a run that is gone."""
_UNREADABLE_S = 600.0
"""The same of a record that may not be opened, by another clock."""
_POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRun:
    """A run by its record. `name` is the label of its variant, `token` is part of the names of its
    jobs in a queue; `queue` names the executor that has them, None when they are processes of
    `host`. `uid` is the user who started it."""

    name: str
    token: str
    host: str
    pid: int
    began: float
    queue: str | None
    path: Path
    uid: int

    @property
    def is_mine(self) -> bool:
        """Whether this user started it: nobody else's run forgets it or ends its jobs."""
        return self.uid == os.geteuid()

    @property
    def may_be_ended(self) -> bool:
        """Whether this user may end its jobs: their own run, or anybody's as an administrator."""
        return os.geteuid() in (0, self.uid)

    @property
    def user(self) -> str:
        """Who started it, by name where this machine has one for the number."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"user {self.uid}"

    def is_alive(self) -> bool:
        """Whether somebody holds the record, or renewed it a moment ago where a lock does not say
        so, by the clock of the file server: those of nodes differ. A record that may not be opened
        is another user's, and its age decides."""
        elsewhere = self.host != os.uname().nodename
        try:
            with _opened(self.path) as file:
                if not _lock(file.fileno()):
                    return True
                elsewhere = elsewhere or not file.writable()
                silent = now_at(self.path.parent) - os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return False
        except PermissionError:
            return self._is_renewed()
        except OSError as error:
            # Removed on another machine; else a file system in trouble proves nothing.
            return error.errno != errno.ESTALE
        return elsewhere and silent < _SILENT_S

    def _is_renewed(self) -> bool:
        try:
            return now_at(self.path.parent) - self.path.stat().st_mtime < _UNREADABLE_S
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def ask_to_stop(self) -> None:
        """Ask the run to stop as it would after Ctrl-C; it looks twice a second."""
        _request(self.path).touch()

    def forget(self) -> None:
        """Remove the record of a run that is over."""
        self.path.unlink(missing_ok=True)
        _request(self.path).unlink(missing_ok=True)


def active_runs(layout: StoreLayout, name: str | None = None) -> tuple[ActiveRun, ...]:
    """Records of runs of a variant (by its label), or of all, the oldest first; dead ones too."""
    folders = (
        [RunFolder.of(layout, name).path] if name else sorted((layout.root / "runs").glob("*"))
    )
    found = []
    for folder in folders:
        for path in sorted(RunFolder(folder).active.glob("*.json")):
            with suppress(OSError, ValueError, KeyError, TypeError):
                found.append(_read(folder.name, path))
    return tuple(sorted(found, key=lambda run: run.began))


def _read(name: str, path: Path) -> ActiveRun:
    """A run by its record; of one that may not be read, what its file says."""
    state = path.stat()
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except PermissionError:
        value = {"host": "a machine that is not known", "pid": 0, "began": 0.0, "queue": None}
    return ActiveRun(
        name=name,
        token=path.stem,
        host=str(value["host"]),
        pid=int(value["pid"]),
        began=float(value["began"]),
        queue=value["queue"],
        path=path,
        uid=int(value.get("uid", state.st_uid)),
    )


def _opened(path: Path) -> TextIO:
    """To be locked: for writing where that is allowed, as emulated locks ask for it."""
    try:
        return path.open("r+")
    except PermissionError:
        return path.open()


@contextmanager
def attended(layout: StoreLayout, name: str, queue: str | None) -> Iterator[ActiveRun]:
    """Keep a record while the block runs. A request to stop becomes SIGTERM for this process."""
    folder = RunFolder.of(layout, name).active
    folder.mkdir(parents=True, exist_ok=True)
    token = os.urandom(6).hex()
    run = ActiveRun(
        name=name,
        token=token,
        host=os.uname().nodename,
        pid=os.getpid(),
        began=time.time(),
        queue=queue,
        path=folder / f"{token}.json",
        uid=os.geteuid(),
    )
    draft = folder / f".{token}"
    over = threading.Event()
    with draft.open("x", encoding="utf-8") as file:
        value = {"host": run.host, "pid": run.pid, "began": run.began, "queue": queue}
        value["uid"] = run.uid
        file.write(json.dumps(value, sort_keys=True) + "\n")
        file.flush()
        # Locked before it can be seen under its name, so nobody takes it for a dead one.
        _lock(file.fileno())
        draft.rename(run.path)
        watcher = threading.Thread(target=_watch, args=(run.path, over), daemon=True)
        watcher.start()
        try:
            yield run
        finally:
            over.set()
            watcher.join()
            with suppress(OSError):  # a store that fails now: the next run finds nobody at work
                run.forget()


def _watch(path: Path, over: threading.Event) -> None:
    """Renew the record, and pass a request to stop on, until the run is over."""
    renewed = time.monotonic()
    asked = False
    while not over.wait(_POLL_S):
        if not asked and _request(path).exists():
            asked = True
            os.kill(os.getpid(), signal.SIGTERM)
        if time.monotonic() - renewed >= _RENEW_S:
            renewed = time.monotonic()
            # Not opened: where locks are emulated, closing a second descriptor would drop ours.
            with suppress(OSError):
                os.utime(path)


def _request(path: Path) -> Path:
    return path.with_suffix(".stop")


def _lock(descriptor: int) -> bool:
    """False when another process has it. Where there are no locks, nobody has one."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


_LOCK = ".run.lock"
"""Held, shared, by the runs at work; in it the digest of their plan."""


@contextmanager
def claim_plan_folder(layout: StoreLayout, name: str, plan_text: str) -> Iterator[Path]:
    """A folder for this plan, held while the block runs: `plans/<name>`, or, while a run of
    another plan of that name is at work there, `plans/<name>-<digest>`. Runs of one plan share.
    Where nothing can be locked, and on file systems of several machines, some of which keep locks
    within one, each plan has a folder of the second kind.
    """
    digest = hashlib.sha256(plan_text.encode("utf-8")).hexdigest()
    shared, own = plans_folder(layout) / name, plans_folder(layout) / f"{name}-{digest[:8]}"
    for folder in (own,) if visibility_timeout(layout) > 0 else (shared, own):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _LOCK).open("a+", encoding="utf-8") as lock:
            locked = _lock_folder(lock, digest)
            if locked or (locked is None and folder == own):
                yield folder
                return
    raise RuntimeError(f"{own} is used by a run of another plan")


def _lock_folder(lock: TextIO, digest: str) -> bool | None:
    """Whether the folder is this plan's as long as the file is open; None where locks do not
    work."""
    if os.environ.get(FLOCK_VARIABLE) == "off":
        return None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody is at work: perhaps with this very plan
        else:
            lock.truncate(0)
            lock.write(digest)
            lock.flush()
        # This gives up the first lock before it takes the second, so another run may come between.
        fcntl.flock(lock, fcntl.LOCK_SH)
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
        return None
    lock.seek(0)
    return lock.read() == digest
