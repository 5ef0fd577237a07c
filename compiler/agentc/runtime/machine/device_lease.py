"""Device leases: no two jobs on this machine have one GPU at a time, whoever runs them.

A lease is a lock on a file for each GPU, in a folder that all users of the machine share. The
kernel lets it go when the last process is gone that holds it: a wrapper, and after it the watchdog
that ends what the wrapper had started. docs/design/devices.md.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agentc.runtime.machine.hardware import Device, DevicesError, machine_devices

FOLDER_VARIABLE = "AGENTC_DEVICE_LOCKS"
"""Another folder of this machine for the locks."""
_FOLDER = "/tmp/agentc-devices"
_POLL_S = 0.2
_NOTE_BYTES = 1024
_SHOWN = 80


def lock_folder(environ: Mapping[str, str]) -> Path:
    """Where the locks are: not $TMPDIR, which differs between users and jobs."""
    return Path(environ.get(FOLDER_VARIABLE) or _FOLDER)


def assert_enough(count: int, devices: Sequence[Device]) -> None:
    """Raise DevicesError where there will never be so many."""
    if count > len(devices):
        there = ", ".join(device.name for device in devices)
        raise DevicesError(
            "%d GPUs are asked for, and this machine has %d%s: lower `placement: {gpus: %d}`, or "
            "run it where there are as many"
            % (count, len(devices), f" ({there})" if there else "", count)
        )


class DeviceLease:
    """`count` of these devices for one holder, all at once or none. `what` tells others who has
    them."""

    def __init__(self, devices: Sequence[Device], count: int, what: str, folder: Path) -> None:
        """Raises DevicesError where there will never be so many."""
        assert_enough(count, devices)
        self.count = count
        self.held: tuple[Device, ...] = ()
        self._devices = tuple(devices)
        self._what = what
        self._folder = folder
        self._descriptors: list[int] = []

    def try_acquire(self) -> bool:
        """Take the first `count` devices that nobody has. False, and nothing is held, while they
        are fewer, or while somebody else is choosing at this moment. Raises DevicesError."""
        if len(self._descriptors) == self.count:
            return True
        try:
            prepare_locks(self._folder)
            choosing = try_lock(self._folder / "choosing.lock")
            if choosing is None:
                return False
            try:
                return self._choose()
            finally:
                os.close(choosing)
        except OSError as error:
            raise DevicesError(
                f"the locks of this machine's GPUs cannot be used: {error}; "
                f"{FOLDER_VARIABLE}=DIR names another folder "
                "for them, the same for everybody who runs jobs on this machine"
            ) from None

    def release(self) -> None:
        """Let go, for every process that has inherited the locks too."""
        for descriptor in self._descriptors:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
        self._descriptors, self.held = [], ()

    def holders(self) -> list[str]:
        """Who has the other devices, in words: `0: sft (process 12 of user 1000)`."""
        told = []
        for device in self._devices:
            said = _read_note(_path(self._folder, device))
            if said:
                told.append(f"{device.name}: {said}")
        return told

    def _choose(self) -> bool:
        taken: list[tuple[Device, int]] = []
        for device in self._devices:
            if len(taken) == self.count:
                break
            descriptor = try_lock(_path(self._folder, device))
            if descriptor is not None:
                taken.append((device, descriptor))
        if len(taken) < self.count:
            for _, descriptor in taken:
                os.close(descriptor)
            return False
        self.held = tuple(device for device, _ in taken)
        self._descriptors = [descriptor for _, descriptor in taken]
        for descriptor in self._descriptors:
            _write_note(descriptor, self._what)
        return True


class StartGate:
    """Held by one process of this machine at a time, until it opens it or ends."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def open(self) -> None:
        """Let the next one in."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def one_at_a_time(environ: Mapping[str, str], gpus: int) -> Iterator[StartGate]:
    """Wait for the gate that shared servers on GPUs pass to start: two of several copies each would
    else have some of their GPUs and wait for those of the other. Raises OSError."""
    descriptor: int | None = None
    if gpus and machine_devices(environ):
        folder = lock_folder(environ)
        prepare_locks(folder)
        while descriptor is None:
            descriptor = try_lock(folder / "starting.lock")
            if descriptor is None:
                time.sleep(_POLL_S)
    gate = StartGate(descriptor)
    try:
        yield gate
    finally:
        gate.open()


def _path(folder: Path, device: Device) -> Path:
    return folder / (f"gpu-{device.identity.replace('/', '_')}.lock")


def prepare_locks(folder: Path) -> None:
    """Anybody may add locks, and nobody may take away those of others. Raises OSError."""
    if not folder.exists():
        draft = folder.with_name(f".{folder.name}.{os.getpid()}")
        draft.mkdir(parents=True)
        draft.chmod(0o1777)
        try:
            draft.rename(folder)
        except OSError:  # another was first
            draft.rmdir()
    if not stat.S_ISDIR(os.lstat(str(folder)).st_mode):
        raise NotADirectoryError(20, "it is no folder", str(folder))


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None while another one does. Raises OSError."""
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Somebody may have cleaned up between the two: then the lock is that of no file.
            with suppress(FileNotFoundError):
                if path.lstat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
            os.close(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise


def _open(path: Path) -> int:
    """The file is there with all its rights at once, or not at all. It is opened without O_CREAT,
    which kernels refuse for files of others in folders like this one."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        with suppress(FileNotFoundError):
            descriptor = os.open(str(path), flags)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor
            os.close(descriptor)
            raise OSError(22, "it is no ordinary file", str(path))
        draft = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        new = os.open(str(draft), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.fchmod(new, 0o666)
            with suppress(FileExistsError):
                os.link(str(draft), str(path))
        finally:
            os.close(new)
            draft.unlink()


def _write_note(descriptor: int, what: str) -> None:
    """For people alone: whoever waits is told. The lock is what counts."""
    note = json.dumps({"what": what[:_SHOWN], "pid": os.getpid(), "user": os.getuid()})
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, note.encode("utf-8"), 0)


def _read_note(path: Path) -> str:
    """Who wrote last, if the lock is held. Anybody may write there: it is shown, never believed."""
    with suppress(OSError, ValueError, AttributeError):
        descriptor = os.open(str(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            said: dict[str, object] = json.loads(os.read(descriptor, _NOTE_BYTES).decode("utf-8"))
        finally:
            os.close(descriptor)
        what = "".join(each for each in str(said.get("what")) if each.isprintable())[:_SHOWN]
        pid, user = int(str(said.get("pid"))), int(str(said.get("user")))
        if Path(f"/proc/{pid}").exists():
            return f"{what} (process {pid} of user {user})"
    return ""


CORES_VARIABLE = "AGENTC_CORES"
"""The cores that a server's program may bind its threads to: `0,1,5`; without it, none."""
_TRIES, _PAUSE_S = 100, 0.05
_TOPOLOGY = "/sys/devices/system/cpu/cpu%d/topology/%s"


def allowed_cores() -> list[int]:
    """The cores that this process may run on, in the order in which to take them: one of each
    physical core first, those of one socket next to each other."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    seen: dict[str, int] = {}
    keys: dict[int, tuple[int, int, int]] = {}
    for core in cores:
        siblings = _topology(core, "thread_siblings_list") or str(core)
        sibling = seen[siblings] = seen.get(siblings, -1) + 1
        socket = _topology(core, "physical_package_id")
        keys[core] = (sibling, int(socket) if socket.lstrip("-").isdigit() else 0, core)
    return sorted(cores, key=lambda core: keys[core])


class CoreLease:
    """Cores of one server, held until `release` or the end of this process."""

    def __init__(self, folder: Path) -> None:
        self.cores: tuple[int, ...] = ()
        self._folder = folder
        self._descriptors: list[int] = []

    def acquire(self, count: int, cores: Sequence[int]) -> tuple[int, ...]:
        """Take the first `count` of these cores that no other server has; none of them where fewer
        are free, or where the locks cannot be used."""
        self.release()
        taken: list[int] = []
        with suppress(OSError):
            prepare_locks(self._folder)
            choosing = self._choosing()
            try:
                for core in cores if choosing is not None else ():
                    if len(taken) == count:
                        break
                    descriptor = try_lock(self._folder / (f"core-{core}.lock"))
                    if descriptor is not None:
                        self._descriptors.append(descriptor)
                        taken.append(core)
            finally:
                if choosing is not None:
                    os.close(choosing)
        if len(taken) < count:
            self.release()
            return ()
        self.cores = tuple(taken)
        return self.cores

    def _choosing(self) -> int | None:
        """One chooses at a time: of two servers that each need two cores of two, one gets both."""
        for _ in range(_TRIES):
            descriptor = try_lock(self._folder / "choosing-cores.lock")
            if descriptor is not None:
                return descriptor
            time.sleep(_PAUSE_S)
        return None

    def release(self) -> None:
        """Let go."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors, self.cores = [], ()


def _topology(core: int, name: str) -> str:
    try:
        return Path(_TOPOLOGY % (core, name)).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
