"""Processes of a job on Linux: groups, parent-death signals, marks, a watchdog, signals to stop,
and the shared memory that killed ones leave.

Every process that a wrapper starts leads its own group, dies with the wrapper, and carries a mark
in its environment, so that what it forked can be found and ended even after `kill -9`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.program.child import die_with_parent

if TYPE_CHECKING:
    from agentc.runtime.store.object_lock import Heartbeat


MARK_VARIABLE = "AGENTC_JOB"
_LINUX = sys.platform.startswith("linux")
_PR_SET_CHILD_SUBREAPER = 36
_LOST_GRACE_S = 20.0


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended (PR_SET_CHILD_SUBREAPER)."""
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def leave_orphans() -> None:
    """Undo `adopt_orphans`: they are init's again."""
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def mark(name: str, store: str) -> str:
    """The mark of an object's processes: the same key at work in another store differs."""
    digest = hashlib.sha256(os.path.realpath(store).encode()).hexdigest()
    return f"{name}@{digest[:12]}"


def start(
    argv: Sequence[str],
    *,
    cwd: str,
    environment: dict[str, str],
    output: int,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own; it is killed when this process ends.

    `output` is the descriptor that takes its stdout and stderr. Raises OSError when it cannot
    be started.
    """
    me = os.getpid()

    def bind_to_parent() -> None:
        die_with_parent(signal.SIGKILL, me)

    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=bind_to_parent,
    )


def signal_group(group: int, number: int) -> bool:
    """Signal a process group; False when nobody is left in it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def seconds_without_core(group: int) -> float:
    """The longest that one thread of this process group was ready to run and no core took it up:
    what a busy machine has kept it waiting; 0 where the kernel does not tell."""
    longest = 0
    for pid in all_processes():
        with suppress(OSError, ValueError, IndexError):
            if os.getpgid(pid) == group:
                for task in Path(f"/proc/{pid}/task").iterdir():
                    longest = max(longest, int((task / "schedstat").read_bytes().split()[1]))
    return longest / 1e9


def group_usage(group: int) -> tuple[float, float]:
    """CPU seconds of the processes of a group so far, children that they have waited for included,
    and the sum of the largest main memory of each, in MiB."""
    ticks, peak = 0, 0
    for pid in all_processes():
        with suppress(OSError, ValueError, IndexError):
            if os.getpgid(pid) == group:
                ticks += sum(map(int, _status_fields(pid)[11:15]))
                status = Path(f"/proc/{pid}/status").read_bytes()
                peak += int(status.split(b"VmHWM:", 1)[1].split(None, 1)[0])
    return ticks / os.sysconf("SC_CLK_TCK"), peak / 1024.0


def marks() -> dict[int, str]:
    """The mark of every process (of this user) that carries one."""
    begins = (MARK_VARIABLE + "=").encode()
    found = {}
    for pid in all_processes():
        for word in _environment(pid):
            if word.startswith(begins):
                found[pid] = word[len(begins) :].decode("utf-8", "replace")
                break
    found.pop(os.getpid(), None)
    return found


def marked(name: str) -> set[int]:
    """Processes (of this user) that carry that mark."""
    return {pid for pid, carried in marks().items() if carried == name}


def end_marked(name: str, grace: float = 0.0) -> int:
    """End every process that carries the mark, with what they still fork; returns how many."""
    return end_all(lambda: marked(name), grace)


def end_all(find: Callable[[], set[int]], grace: float) -> int:
    """TERM what `find` returns, wait up to `grace` seconds, then KILL until it returns nothing."""
    ended: set[int] = set()
    deadline = time.monotonic() + grace
    number = signal.SIGTERM if grace > 0 else signal.SIGKILL
    # A process in uninterruptible sleep cannot be ended by anybody: do not wait for ever.
    last = deadline + 10.0
    while time.monotonic() < last:
        alive = {pid for pid in find() if not _is_zombie(pid)}
        if not alive:
            return len(ended)
        for pid in alive - ended if number == signal.SIGTERM else alive:
            _send(pid, number)
        ended |= alive
        if number == signal.SIGTERM and time.monotonic() >= deadline:
            number = signal.SIGKILL
        time.sleep(0.02)
    return len(ended)


def started(pid: int) -> str:
    """When a process was started, in the kernel's ticks; "" when there is none: of two processes
    with one number the times differ."""
    fields = _status_fields(pid)
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def children() -> set[int]:
    """Direct children of this process, adopted orphans included."""
    me = os.getpid()
    try:
        # Much cheaper than asking every process of a large machine for its parent.
        lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    except OSError:
        lists = []
    if lists:
        return {int(pid) for text in lists for pid in text.split()}
    return {pid for pid in all_processes() if parent_of(pid) == me}


class Watchdog:
    """A forked process that ends everything with a mark once this process is gone.

    It holds what this process had open (the lock above all) until it has finished, so that the
    next wrapper of the same key starts on clean ground. With a keeper it renews claims meanwhile;
    when one is lost, it stops this process.
    """

    def __init__(self, name: str, keeper: Heartbeat | None = None) -> None:
        read, write = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(write)
            _watch(read, name, parent, keeper)
        os.close(read)
        self._write = write

    def dismiss(self) -> None:
        """Everything has been ended already: the watchdog leaves without looking."""
        if self._write >= 0:
            with suppress(OSError):
                os.write(self._write, b"x")
            os.close(self._write)
            self._write = -1


def _watch(read: int, name: str, parent: int, keeper: Heartbeat | None) -> None:
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        while keeper is not None and not select.select([read], [], [], keeper.every)[0]:
            if not keeper.beat():
                _send(parent, signal.SIGTERM)
                if not select.select([read], [], [], _LOST_GRACE_S)[0]:
                    _send(parent, signal.SIGKILL)
                keeper = None
        if not os.read(read, 1):
            end_marked(name)
            if keeper is not None:
                keeper.release()
    finally:
        os._exit(0)


def all_processes() -> list[int]:
    """Numbers of all processes of this machine."""
    if not _LINUX:
        return []
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _status_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def parent_of(pid: int) -> int:
    """The parent of a process; -1 when it is gone."""
    fields = _status_fields(pid)
    return int(fields[1]) if fields else -1


def _is_zombie(pid: int) -> bool:
    fields = _status_fields(pid)
    return not fields or fields[0] in ("Z", "X")


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


STOPPED = "interrupted"
"""How the message of a StoppedError begins, which a job's status keeps."""


class StoppedError(Exception):
    """A signal asked this process to stop."""

    def __init__(self, number: int) -> None:
        # `agentc run` stops its jobs by INT whatever signal it was itself stopped by.
        by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
        super().__init__(STOPPED + by)
        self.number = number


def is_stopped_message(message: str) -> bool:
    """Whether a message of a job's status is that of a StoppedError."""
    return message == STOPPED or message.startswith(STOPPED + " by SIG")


@contextmanager
def stoppable() -> Iterator[None]:
    """Signals to stop raise StoppedError in this block (in the main thread, where they arrive)."""

    def stop(number: int, frame: object) -> None:
        raise StoppedError(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What was ignored (HUP under nohup) stays so.
    heeded = [one for one in STOPPING if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_FOLDER = "/dev/shm/"


def mapped_by(groups: Collection[int]) -> set[str]:
    """The files there that processes of these groups have mapped."""
    found: set[str] = set()
    for pid in all_processes():
        with suppress(OSError):
            if os.getpgid(pid) in groups:
                found |= _mapped(pid)
    return found


def remove_unused(paths: Collection[str]) -> None:
    """Remove those of our user that no process has mapped any more."""
    left = {path for path in paths if _is_ours(path)}
    if not left:
        return
    for pid in all_processes():
        with suppress(OSError):
            left -= _mapped(pid)
    for path in left:
        with suppress(OSError):
            Path(path).unlink()


def _mapped(pid: int) -> set[str]:
    found = set()
    for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
        at = line.find(_FOLDER.encode())
        if at >= 0:
            found.add(line[at:].decode("utf-8", "surrogateescape"))
    return {path for path in found if not path.endswith(" (deleted)")}


def _is_ours(path: str) -> bool:
    try:
        return Path(path).lstat().st_uid == os.getuid()
    except OSError:
        return False
