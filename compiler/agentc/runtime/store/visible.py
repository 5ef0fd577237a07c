"""Delayed visibility: on a network file system a node may go on believing for seconds that a name
is not there which another node has published (attribute caching)."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from agentc.runtime.store.layout import StoreLayout

VISIBLE_VARIABLE = "AGENTC_VISIBLE_S"
"""How long to wait for what another node has published; default: by the kind of file system."""
PATIENCE_S = 60.0
"""NFS keeps what it knows of a folder for up to 60 s (acdirmax)."""
LOCAL = frozenset(
    [
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "tmpfs",
        "ramfs",
        "overlay",
        "f2fs",
        "bcachefs",
        "apfs",
        "ntfs3",
        "vfat",
        "exfat",
    ]
)
"""File systems of one machine alone."""
MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")

_known: dict[str, float] = {}


def visibility_timeout(layout: StoreLayout) -> float:
    """Seconds after which a name that still does not show is taken to be missing; 0 on a file
    system that only this machine writes to."""
    value = os.environ.get(VISIBLE_VARIABLE)
    if value is not None:
        with suppress(ValueError):
            return max(0.0, float(value))
    root = str(layout.root)
    if root not in _known:
        _known[root] = 0.0 if file_system(layout.root)[0] in LOCAL else PATIENCE_S
    return _known[root]


def await_published(layout: StoreLayout, name: str, seconds: float) -> bool:
    """Whether the object shows within so many seconds."""
    deadline = time.monotonic() + seconds
    pause = 0.05
    while not layout.is_published(name):
        if time.monotonic() >= deadline:
            return False
        refresh(layout.object(name).parent)
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(1.0, pause * 2)
    return True


def refresh(folder: Path) -> None:
    """Make this node ask the server for the folder's names again: it does so after a change that
    it made itself."""
    probe = folder / (f".look-{os.uname().nodename}-{os.getpid()}")
    with suppress(OSError):
        os.close(os.open(str(probe), os.O_WRONLY | os.O_CREAT, 0o666))
        probe.unlink()


def now_at(folder: Path) -> float:
    """What time it is by the clock that dates files in a folder: a file server's where there is
    one, which this machine's may be minutes away from."""
    probe = folder / (f".now-{os.uname().nodename}-{os.getpid()}")
    try:
        descriptor = os.open(str(probe), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            os.write(descriptor, b".")
            os.utime(descriptor)
            return os.fstat(descriptor).st_mtime
        finally:
            os.close(descriptor)
            with suppress(OSError):
                probe.unlink()
    except OSError:
        return time.time()


def file_system(path: Path) -> tuple[str, str]:
    """Type and mount point of the file system that holds a folder (or will, once it is made);
    empty texts where the system does not tell."""
    while not path.exists() and path != path.parent:
        path = path.parent
    real = os.path.realpath(str(path))
    best = ("", "")
    try:
        lines = MOUNTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return best
    for line in lines:
        fields = line.split(" ")
        if "-" not in fields:
            continue
        # Blanks, tabs, newlines and backslashes of its name are written as octal numbers.
        point = _OCTAL.sub(lambda found: chr(int(found.group(1), 8)), fields[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        # Of two mounts on one point the later one is on top.
        if inside and len(point) >= len(best[1]):
            best = (fields[fields.index("-", 6) + 1], point)
    return best
