"""Chromium's box, as a command: no file but programs and fonts, no network, no process of others.

Landlock is no second choice here: Chromium needs processes, sockets and files of its own, which
only namespaces give it without giving it the machine's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentc.runtime.sandbox.interpreter import NOBODY
from agentc.runtime.sandbox.kinds import bubblewrap_version

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
