"""One Chromium in its box: the command, the thread of orders to it, what it uses, its end.

In the box are programs and fonts, no network and no process of others. Landlock is no second
choice here: Chromium needs processes, sockets and files of its own, which only namespaces give it
without giving it the machine's.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentc.runtime.browser.devtools import (
    BrowserEndError,
    Devtools,
    DevtoolsError,
    LateReplyError,
)
from agentc.runtime.sandbox.boxes import NOBODY, bubblewrap_version
from agentc.runtime.sandbox.process import child_pid

PROGRAMS = (
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/headless_shell",
    "/usr/lib/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
)
"""The programs themselves, not the scripts of that name, which start a shell first."""
INSTALL = (
    "install both: `apt install bubblewrap chromium fonts-dejavu-core` (Debian), "
    "`dnf install bubblewrap chromium-headless dejavu-sans-fonts` (Fedora, RHEL)"
)
NAMESPACES = (
    "allow user namespaces: `sysctl user.max_user_namespaces` above 0, on Ubuntu 24.04 or newer an "
    "AppArmor profile for bwrap, in a container a seccomp profile that lets it make them"
)
_SHARED_MEMORY_MB, _SCRATCH_MB = 512, 256
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--user-data-dir=/tmp/profile",
    "--no-first-run",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--mute-audio",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    # Equal pages are to give equal pictures.
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--hide-scrollbars",
    "--run-all-compositor-stages-before-draw",
)


class NoBrowserError(Exception):
    """This machine offers no boxed browser: the message says why, and how to have one."""


class BrowserBox(NamedTuple):
    """`inner` is whether Chromium's own sandbox works inside the box as well."""

    program: str
    bubblewrap: str
    inner: bool = True


def find_box(programs: Sequence[str] = PROGRAMS) -> BrowserBox:
    """Both programs; whether they start is another matter. Raises NoBrowserError."""
    lacking = []
    try:
        version = bubblewrap_version()
    except OSError as error:
        raise NoBrowserError(refusal(str(error))) from None
    if version is None:
        lacking.append("bwrap is not installed")
    program = next((each for each in programs if os.access(each, os.X_OK)), None)
    if program is None:
        lacking.append(f"no Chromium is installed where one is looked for ({programs[0]})")
    if program is None or version is None:
        raise NoBrowserError(refusal(", ".join(lacking)))
    return BrowserBox(program, version)


def refusal(reason: str, remedy: str = INSTALL) -> str:
    """Why pages are not rendered here."""
    return (
        "no boxed browser here for pages that models write, and without one none is rendered: "
        f"{reason}; {remedy}"
    )


def command(box: BrowserBox, info: int) -> list[str]:
    """Starts the browser, which takes orders from descriptor 3 and answers on 4; bubblewrap says
    which process it started to `info`. It sees libraries and fonts, and two folders in memory that
    end with it."""
    words: list[str] = []
    if os.geteuid() == 0:
        ids = [
            f"--reuid={NOBODY}",
            f"--regid={NOBODY}",
            "--clear-groups",
            "--inh-caps=-all",
        ]
        words += [shutil.which("setpriv") or "/usr/bin/setpriv", *ids, "--"]
    words += [shutil.which("bwrap") or "/usr/bin/bwrap", "--unshare-all", "--unshare-user"]
    words += ["--info-fd", str(info), "--uid", str(NOBODY), "--gid", str(NOBODY)]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "box"]
    words += ["--clearenv", "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8"]
    words += ["--setenv", "TZ", "UTC"]
    for path in _readable(box.program):
        if Path(path).is_symlink():
            words += ["--symlink", os.readlink(path), path]  # noqa: PTH115 - Python 3.8
        else:
            words += ["--ro-bind", path, path]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for place, size in (("/tmp", _SCRATCH_MB), ("/dev/shm", _SHARED_MEMORY_MB)):
        words += ["--size", str(size << 20), "--tmpfs", place]
    words += ["--chdir", "/tmp", "--remount-ro", "/", box.program, *_FLAGS]
    if not box.inner:
        words.append("--no-sandbox")
    return [*words, "about:blank"]


def environment() -> dict[str, str]:
    """Of bubblewrap; the browser's own is in `command`."""
    return {"LANG": "C.UTF-8"}


def _readable(program: str) -> list[str]:
    own: str | None = str(Path(program).parent)
    if own is not None and own.startswith("/usr/"):
        own = None
    # /usr/local is the machine's own matter, so not all of /usr.
    wanted = ["/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/share", "/usr/bin"]
    wanted += ["/lib", "/lib32", "/lib64", "/etc/fonts", "/etc/ld.so.cache", "/etc/alternatives"]
    return [path for path in (*wanted, own) if path is not None and Path(path).exists()]


_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12
"""Of /proc/PID/stat, after the name."""


class TreeUse(NamedTuple):
    """Bytes that no file backs, and seconds of those processes that still live."""

    memory: int
    seconds: float


def use_of_tree(root: int) -> TreeUse:
    """Zero where it has ended."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - each look counts, there are many
        if entry.isdigit():
            with suppress(OSError):
                text = Path("/proc", entry, "stat").read_text(errors="replace")
                fields = text.rpartition(")")[2].split()
                children.setdefault(int(fields[_PARENT]), []).append(int(entry))
                seconds[int(entry)] = (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
    memory, spent, left = 0, 0.0, [root]
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        spent += seconds.get(pid, 0.0)
        with suppress(OSError):
            held = Path("/proc", str(pid), "statm").read_text().split()
            memory += (int(held[1]) - int(held[2])) * _PAGE
    return TreeUse(memory, spent)


_START_S, _END_S = 120.0, 60.0
_CHUNK, _SHOWN = 65536, 400
_ORDERS, _ANSWERS, _INFO, _ABOVE = 3, 4, 5, 16


class UseExceededError(Exception):
    """It took more memory, or more processor time, than a page may."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class BoxedBrowser:
    """Raises NoBrowserError where it does not start. One thread's; `end` it."""

    def __init__(self, box: BrowserBox, memory_mb: int) -> None:
        self.box = box
        self._memory = memory_mb << 20
        self._until_spent: float | None = None
        # What the browser is given lies above the numbers that it wants them to have.
        theirs, self._orders = _pipe(theirs=0)
        answers, self._answers = _pipe(theirs=1)
        info, told = _pipe(theirs=1)
        complaint = os.memfd_create("complaint")
        said = fcntl.fcntl(complaint, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        words = command(box, _INFO)
        given = ((said, 2), (theirs, _ORDERS), (answers, _ANSWERS), (info, _INFO))
        try:
            # By hand, for `subprocess` gives no descriptor another number.
            self._pid = os.posix_spawn(
                words[0],
                words,
                environment(),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    *((os.POSIX_SPAWN_DUP2, ours, number) for ours, number in given),
                ],
                setsid=True,
            )
        finally:
            for ours, _ in given:
                os.close(ours)
        self._inner: int | None = None
        self._reaped = False
        """Whether it was waited for: its number may be somebody else's from then on."""
        self.devtools = Devtools(self._orders, self._answers, self._watch)
        try:
            self._await_start(told)
        except (BrowserEndError, LateReplyError, DevtoolsError):
            text = os.pread(complaint, _CHUNK, 0).decode("utf-8", "replace").strip()
            self.end()
            last = text.splitlines()[-1][:_SHOWN] if text else "it does not answer"
            remedy = {"remedy": NAMESPACES} if "namespace" in text else {}
            raise NoBrowserError(refusal(f"it does not start: {last}", **remedy)) from None
        finally:
            os.close(told)
            os.close(complaint)

    def answers(self) -> bool:
        """Whether it still does."""
        self.allow(None)
        try:
            self.devtools.call("Browser.getVersion", until=time.monotonic() + _END_S)
        except (BrowserEndError, LateReplyError, DevtoolsError):
            return False
        return True

    def allow(self, seconds: float | None) -> None:
        """As much processor time from now on, and its memory; None: no limit is watched."""
        self._until_spent = None if seconds is None else self.use().seconds + seconds

    def use(self) -> TreeUse:
        """Of all its processes."""
        return use_of_tree(self._pid)

    def end(self) -> None:
        """Kill it, and wait until nothing of it is there."""
        if self._inner is not None:
            # The first process of its namespace takes all others along.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inner, signal.SIGKILL)
            os.close(self._inner)
            self._inner = None
            self._await_end(_END_S)
        if not self._reaped:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._reaped = True
        self.devtools.close()

    def _await_end(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            while not self._reaped and time.monotonic() < until:
                self._reaped = os.waitpid(self._pid, os.WNOHANG)[0] != 0
                if not self._reaped:
                    time.sleep(0.005)
        except ChildProcessError:
            self._reaped = True

    def _await_start(self, told: int) -> None:
        until = time.monotonic() + _START_S
        text = b""
        while b"}" not in text:
            poll = select.poll()
            poll.register(told, select.POLLIN)
            ready = poll.poll(int(max(0.0, until - time.monotonic()) * 1000))
            chunk = os.read(told, _CHUNK) if ready else b""
            if not chunk:
                raise BrowserEndError
            text += chunk
        with suppress(AttributeError, OSError):  # Python 3.8, or it has ended
            self._inner = os.pidfd_open(child_pid(text))
        self.version = str(self.devtools.call("Browser.getVersion", until=until)["product"])

    def _watch(self) -> None:
        if self._until_spent is None:
            return
        used = self.use()
        if used.memory > self._memory:
            raise UseExceededError("memory")
        if used.seconds > self._until_spent:
            raise UseExceededError("time")


def _pipe(theirs: int) -> tuple[int, int]:
    """The end that a process is to be given, numbered above those it may ask for, and ours.
    `theirs`: 0 reads, 1 writes."""
    both = os.pipe()
    high = fcntl.fcntl(both[theirs], fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(both[theirs])
    return high, both[1 - theirs]


def start_browser(box: BrowserBox | None = None, memory_mb: int = 2048) -> BoxedBrowser:
    """With Chromium's own sandbox inside the box where that works. Raises NoBrowserError."""
    found = box or find_box()
    try:
        return BoxedBrowser(found, memory_mb)
    except NoBrowserError:
        if not found.inner:
            raise
        return BoxedBrowser(found._replace(inner=False), memory_mb)
