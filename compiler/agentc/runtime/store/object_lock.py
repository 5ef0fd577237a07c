"""The lock on an object: one holder at a time among processes, users and nodes.

Besides `flock` on `locks/<kind>-<key>.lock`, which some mounts keep within one node and others
refuse, an owner file says who holds it. It is made by link(2), which a file server carries out
once, and a heartbeat renews its time as long as the holder or its watchdog lives
(docs/design/shared_store.md). `claim_all` takes all locks of a wrapper. This is one protocol, in
one file although it is long.
"""

from __future__ import annotations

import binascii
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.runtime.machine.process import stoppable
from agentc.runtime.store.file_system import await_published, visibility_timeout, writing
from agentc.runtime.store.layout import StoreLayout

STALE_VARIABLE = "AGENTC_LOCK_STALE_S"
STALE_S = 60.0
"""A holder that was not heard of for so long counts as gone, wherever it runs."""
BEATS = 6
"""A holder is heard of so many times in that span."""

_SLURM = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT")


def stale_seconds() -> float:
    """The span that this process declares in its owner files; others go by what is declared."""
    try:
        return max(0.5, float(os.environ[STALE_VARIABLE]))
    except (KeyError, ValueError):
        return STALE_S


def describe_self(name: str, needs: Sequence[str]) -> dict[str, Any]:
    """The record of this process. `needs` are the objects that it is about to read."""
    return {
        "object": name,
        "nonce": binascii.hexlify(os.urandom(8)).decode("ascii"),
        "host": os.uname().nodename,
        "boot": _boot(),
        "pids": _pid_namespace(),
        "pid": os.getpid(),
        "since": start_time(os.getpid()),
        "user": _user(),
        "slurm": {variable: os.environ[variable] for variable in _SLURM if variable in os.environ},
        "stale_s": stale_seconds(),
        "flock": False,
        "device": None,
        "needs": list(needs),
        "time": time.time(),
    }


def describe_holder(record: Mapping[str, Any]) -> str:
    """`alice's process 4711 on node17 (SLURM job 99)`."""
    if not record:
        return "somebody"
    text = "{}'s process {} on {}".format(
        record.get("user") or "somebody", record.get("pid"), record.get("host"),
    )  # fmt: skip
    job = (record.get("slurm") or {}).get("SLURM_JOB_ID")
    return text + (f" (SLURM job {job})" if job else "")


def same_kernel(record: Mapping[str, Any]) -> bool:
    """Whether the holder runs (or ran) under the kernel that runs this process, since its last
    boot: containers of one machine do, two machines never."""
    return bool(record.get("boot")) and record.get("boot") == _boot()


def is_gone(record: Mapping[str, Any]) -> bool:
    """Whether its process is known to have ended. About other machines nothing is known, but for
    an earlier start of this very SLURM job."""
    if same_kernel(record) and record.get("pids") == _pid_namespace():
        pid = record.get("pid")
        return isinstance(pid, int) and start_time(pid) != record.get("since")
    return _is_my_earlier_start(record.get("slurm") or {})


def start_time(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None when there is none of that number.
    With it a number that was given out again is not taken for the old process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in ("Z", "X") else fields[19]


def decode(text: str) -> dict[str, Any]:
    """A record from the text of an owner file; empty when the text is none (yet)."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_my_earlier_start(slurm: Mapping[str, str]) -> bool:
    mine = {variable: os.environ.get(variable) or "0" for variable in _SLURM}
    theirs = {variable: slurm.get(variable) or "0" for variable in _SLURM}
    if mine["SLURM_JOB_ID"] == "0" or mine["SLURM_JOB_ID"] != theirs["SLURM_JOB_ID"]:
        return False
    try:
        return int(theirs["SLURM_RESTART_COUNT"]) < int(mine["SLURM_RESTART_COUNT"])
    except ValueError:
        return False


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        return ""


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


FLOCK_VARIABLE = "AGENTC_FLOCK"
"""`off` where flock hangs or lies; the owner files do without it."""

NO_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTSUP)
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK)
_LONG_AGO_S = 600.0
"""A holder that was not heard of for so long by the file server's clock is gone at first sight."""


class LostClaimError(Exception):
    """Another process took the claim over, because this one was not heard of for too long."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"its claim on {name} was taken over: this process could not be heard of for too "
            "long (it"
            " was suspended, or the store could not be reached). What it did is left to the other"
        )


class ObjectLock:
    """The claim on one object. `record` is what others read about this process."""

    def __init__(self, layout: StoreLayout, name: str, needs: Sequence[str] = ()) -> None:
        self.name = name
        self.record = describe_self(name, needs)
        self._lock = layout.lock(name)
        self._owner = self._lock.with_suffix(".owner")
        self._descriptor = -1
        self._flock = False
        self._held = False
        self._heard: tuple[str, float, float] = ("", 0.0, 0.0)

    def attempt(self) -> dict[str, Any] | None:
        """Take it. None when it is held now; else the record of who holds it ({} if unknown)."""
        if self._descriptor < 0:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(str(self._lock), os.O_RDWR | os.O_CREAT, 0o666)
        if not self._flock and os.environ.get(FLOCK_VARIABLE) != "off":
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._flock = True
            except BlockingIOError:
                return self._read_holder()[0]
            except OSError as error:
                if error.errno not in NO_FLOCK:
                    raise
        self.record["flock"] = self._flock
        self.record["device"] = os.fstat(self._descriptor).st_dev
        while True:
            clock = _make_alone(self._owner, self.record)
            if clock is None:
                self._held = True
                return None
            found, moved = self._read_holder()
            if moved is None:
                continue  # let go this moment
            if not self._is_over(found, moved, clock):
                return found
            if not self._break(found):
                return found

    def beat(self) -> bool:
        """Tell others that the holder lives. False when the claim was taken over. Raises OSError
        when the owner file cannot be reached."""
        descriptor = os.open(str(self._owner), os.O_RDONLY)
        try:
            if not self._reads_mine(descriptor):
                return False
            os.utime(descriptor)
        finally:
            os.close(descriptor)
        return True

    def is_mine(self) -> bool:
        """Whether it is held still. Raises OSError when nobody can tell."""
        try:
            descriptor = os.open(str(self._owner), os.O_RDONLY)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESTALE):
                return False
            raise
        try:
            return self._reads_mine(descriptor)
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Let go."""
        if self._held:
            self._held = False
            with suppress(OSError):
                if self.is_mine():
                    self._owner.unlink()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor, self._flock = -1, False

    def note_published(self) -> None:
        """Leave word in the lock file for nodes that do not see the object yet."""
        text = json.dumps({"published": self.name, **self._mount()})
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode("utf-8"), 0)
        os.fsync(self._descriptor)

    def note_removed(self) -> None:
        """Take that word back: the object is gone."""
        os.ftruncate(self._descriptor, 0)

    def published_elsewhere(self) -> float | None:
        """How many seconds ago another machine (or another mount of this one) published the
        object, by its own word."""
        try:
            # Opened anew: that is when a network file system asks its server.
            with self._lock.open(encoding="utf-8") as file:
                word = decode(file.read())
                published = os.fstat(file.fileno()).st_mtime
            now = self._owner.stat().st_mtime
        except OSError:
            return None
        mine = self._mount()
        if word.get("published") != self.name or {name: word.get(name) for name in mine} == mine:
            return None
        return max(0.0, now - published)

    def _mount(self) -> dict[str, Any]:
        """What tells one mount from another, on whichever machine."""
        return {"boot": self.record["boot"], "device": self.record["device"]}

    def _reads_mine(self, descriptor: int) -> bool:
        text = os.read(descriptor, 65536).decode("utf-8", "replace")
        return bool(decode(text).get("nonce") == self.record["nonce"])

    def _read_holder(self) -> tuple[dict[str, Any], float | None]:
        """The holder's record and the time of its last beat; (…, None) when there is none."""
        try:
            with self._owner.open(encoding="utf-8", errors="replace") as file:
                return decode(file.read()), os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return {}, None
        except OSError as error:
            if error.errno == errno.ESTALE:  # removed on another node as we read it
                return {}, None
            raise

    def _is_over(self, found: dict[str, Any], moved: float, clock: float) -> bool:
        """Whether the holder is provably gone, or was not heard of for too long. How long is
        measured here: clocks of nodes differ."""
        one_mount = {name: found.get(name) for name in self._mount()} == self._mount()
        if self._flock and found.get("flock") and one_mount:
            # It would still have its flock, or its watchdog would.
            return True
        now = time.monotonic()
        nonce = str(found.get("nonce"))
        if self._heard[:2] != (nonce, moved):
            self._heard = (nonce, moved, now)
        silent = now - self._heard[2]
        span = found.get("stale_s")
        span = float(span) if isinstance(span, (int, float)) else STALE_S
        if silent >= span or clock - moved >= max(_LONG_AGO_S, 10 * span):
            return True
        # Its watchdog may still be ending what it left behind, and beats until it has.
        return silent >= 3 * span / BEATS and is_gone(found)

    def _break(self, found: dict[str, Any]) -> bool:
        """Remove the owner file of a holder that is gone; one process at a time may."""
        breaker = self._owner.with_suffix(".break")
        clock = _make_alone(breaker, self.record)
        if clock is not None:
            with suppress(FileNotFoundError):
                # Whoever made it does nothing slow under it: this one died there.
                if clock - breaker.stat().st_mtime >= STALE_S:
                    breaker.unlink()
            return False
        try:
            now, _ = self._read_holder()
            if now.get("nonce") == found.get("nonce"):
                with suppress(FileNotFoundError):
                    self._owner.unlink()
        finally:
            with suppress(FileNotFoundError):
                breaker.unlink()
        return True


def read_records(layout: StoreLayout, quiet_s: float) -> list[dict[str, Any]]:
    """The records of all who hold a claim in the store and were heard of in so many seconds (by
    this machine's clock, so not fewer than clocks of machines may differ)."""
    found = []
    locks = layout.root / "locks"
    for path in locks.iterdir() if locks.is_dir() else ():
        if path.suffix == ".owner":
            with suppress(OSError):
                if time.time() - path.stat().st_mtime < quiet_s:
                    found.append(decode(path.read_text(encoding="utf-8")))
    return [record for record in found if record]


def _make_alone(path: Path, record: dict[str, Any]) -> float | None:
    """Make a file that nobody else has made. None when that is done; else the time that the file
    server (or the kernel) shows on a file that is written now."""
    text = json.dumps(record, sort_keys=True)
    draft = path.with_name(f".{path.name}.{record['nonce']}")
    draft.write_text(text, encoding="utf-8")
    try:
        try:
            os.link(str(draft), str(path))
        except OSError as error:
            if error.errno in _NO_LINKS:
                return _create_alone(path, text, draft)
            # The reply may have been lost and the request sent twice: links are what counts.
            state = draft.stat()
            if state.st_nlink == 2:
                return None
            # ESTALE: this node still knew the file of a holder that has let go this moment.
            if error.errno not in (errno.EEXIST, errno.ESTALE):
                raise
            return state.st_mtime
        return None
    finally:
        with suppress(OSError):
            draft.unlink()


def _create_alone(path: Path, text: str, draft: Path) -> float | None:
    try:
        descriptor = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return draft.stat().st_mtime
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
    return None


class Heartbeat:
    """Beats for claims; `every` is the pause between two rounds in seconds."""

    def __init__(self, claims: Sequence[ObjectLock]) -> None:
        self._claims: list[ObjectLock] = list(claims)
        span = stale_seconds()
        self.every = span / BEATS
        self._patience = span / 2
        self._reached = _clock()

    def beat(self) -> bool:
        """One round. False when the wrapper has to stop at once: a claim was taken over, or the
        owner files could not be reached for so long that others may take it over any moment."""
        reached = True
        for claim in self._claims:
            try:
                if not claim.beat():
                    return False
            except FileNotFoundError:
                return False
            except OSError:
                reached = False
        if reached:
            self._reached = _clock()
        return _clock() - self._reached < self._patience

    def release(self) -> None:
        """The wrapper is gone and all that it started: let go for it."""
        for claim in self._claims:
            with suppress(OSError):
                claim.release()


def _clock() -> float:
    """Seconds, those of a machine that was suspended included."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


_SHORTEST_S, _LONGEST_S = 0.1, 1.0


def claim_all(
    layout: StoreLayout,
    wanted: Mapping[str, Sequence[str]],
    published: Callable[[], bool],
    report: Callable[[str], None],
) -> list[ObjectLock] | None:
    """Hold the claims on the objects `wanted`, each with the objects that making it reads. None
    when others published all of them meanwhile. Raises StoppedError, LostClaimError and OSError.
    """
    held: list[ObjectLock] = []
    try:
        with stoppable(), writing("its claims", layout.root / "locks"):
            # One order for everybody, so that two sessions with common members cannot block each
            # other for ever.
            for name in sorted(wanted):
                claim = ObjectLock(layout, name, wanted[name])
                _wait(claim, Heartbeat(held), report)
                held.append(claim)
            for claim in held:
                _await_published(layout, claim, Heartbeat(held))
            if not published():
                return held
    except BaseException:
        _release(held)
        raise
    _release(held)
    return None


def _wait(claim: ObjectLock, keeper: Heartbeat, report: Callable[[str], None]) -> None:
    pause, reported = _SHORTEST_S, False
    due = time.monotonic() + keeper.every
    try:
        while True:
            record = claim.attempt()
            if record is None:
                return
            if not reported:
                by = f" ({describe_holder(record)})" if record else ""
                report(f"another run works on {claim.name}{by}; waiting")
                reported = True
            time.sleep(pause)
            if not record or not same_kernel(record):
                pause = min(_LONGEST_S, 1.5 * pause)
            if time.monotonic() >= due:
                due = time.monotonic() + keeper.every
                if not keeper.beat():
                    raise LostClaimError(claim.name)
    except BaseException:
        claim.release()
        raise


def _await_published(layout: StoreLayout, claim: ObjectLock, keeper: Heartbeat) -> None:
    """Wait for an object that another node says it has published and that does not show here."""
    delay = visibility_timeout(layout)
    if delay <= 0 or layout.is_published(claim.name):
        return
    age = claim.published_elsewhere()
    if age is None:
        return
    deadline = time.monotonic() + delay - age
    while time.monotonic() < deadline:
        if await_published(layout, claim.name, min(keeper.every, deadline - time.monotonic())):
            return
        if not keeper.beat():
            raise LostClaimError(claim.name)


def _release(held: Sequence[ObjectLock]) -> None:
    for claim in held:
        claim.release()
