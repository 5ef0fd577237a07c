"""The file system under a store: when it shows what other nodes wrote, and why it refuses a write,
or to start an interpreter.

On a network file system a node may believe for seconds that a name is not there which another node
has published (attribute caching).
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
        _known[root] = 0.0 if mounted_file_system(layout.root)[0] in LOCAL else PATIENCE_S
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


def mounted_file_system(path: Path) -> tuple[str, str]:
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


_FULL_LOG = ("no space left on device", "errno 28", "disk quota exceeded", "errno 122")
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE, errno.EIO)
_NO_MODULE = re.compile(r"^(?:ModuleNotFoundError|ImportError): .*?'([\w.]+)'", re.MULTILINE)
_KEPT = "Nothing that is published is lost, and the next run continues from what is staged."


class StoreWriteError(OSError):
    """The store could not be written to; the message is for people. `errno` is the system's."""

    def __init__(self, error: OSError, what: str, folder: Path) -> None:
        super().__init__(explain(error, what, folder))
        self.errno = error.errno

    def __str__(self) -> str:
        return str(self.args[0])


def explain_os_error(error: Exception, what: str, folder: Path) -> Exception:
    """The error, in terms of `what` and `folder` where the file system is to blame."""
    if isinstance(error, OSError) and error.errno in _DISK:
        return error if isinstance(error, StoreWriteError) else StoreWriteError(error, what, folder)
    return error


def is_of_disk(error: OSError) -> bool:
    """Whether it says that a disk or a file server is full, read-only or failing."""
    return error.errno in _DISK


@contextmanager
def writing(what: str, folder: Path) -> Iterator[None]:
    """Within this block errors of the file system are told in terms of `what` and `folder`."""
    try:
        yield
    except StoreWriteError:
        raise
    except OSError as error:
        raise StoreWriteError(error, what, folder) from error


def explain(error: OSError, what: str, folder: Path) -> str:
    """The message for an error that came up while `what` was written to `folder`."""
    at = f"cannot write {what} to {folder}: "
    number = error.errno
    if number == errno.ENOSPC:
        return at + (
            f"no space is left on its file system (ENOSPC; {free_space(folder)}). Free some, "
            "with `agentc store gc"
            f" --delete` for one, or keep the store elsewhere (--store, AGENTC_STORE). {_KEPT}"
        )
    if number == errno.EDQUOT:
        return at + (
            f"the disk quota of {_me()} is used up (EDQUOT; {free_space(folder)}). `quota -s` "
            "(on Lustre `lfs quota -h`)"
            " shows it; remove files (`agentc store gc --delete`), ask for more, or keep the store"
            f" elsewhere (--store, AGENTC_STORE). {_KEPT}"
        )
    if number == errno.EROFS:
        kind, point = mounted_file_system(folder)
        return at + (
            "its file system is mounted read-only (EROFS; {} at {}). Remount it, or keep the"
            " store elsewhere (--store, AGENTC_STORE)".format(kind or "unknown", point or "?")
        )
    if number in (errno.EACCES, errno.EPERM):
        return at + (
            f"{_me()} may not ({errno.errorcode[number]}; {_permissions(folder)}; "
            f"{free_space(folder)}). A store that several users share belongs to a group of"
            " theirs: chgrp -R GROUP STORE; chmod -R g+rwX STORE; find STORE -type d -exec chmod"
            " g+s {} +"
        )
    if number in (errno.ESTALE, errno.EIO, errno.ETIMEDOUT):
        return at + (
            f"the file server or the disk failed ({errno.errorcode[number]}; "
            f"{free_space(folder)}). Run again once it answers. {_KEPT}"
        )
    if number in (errno.EEXIST, errno.ENOTDIR):
        return at + "a file is where a folder has to be: %s" % (error.filename or folder)
    if number == errno.ENAMETOOLONG:
        return at + "a name is too long for its file system: %s" % (error.filename or folder)
    return at + f"{error.strerror or error} ({free_space(folder)})"


_INTERPRETER = re.compile(r"(^|/)python[\d.]*$")
_NOT_STARTED = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOEXEC)


def explain_start(error: OSError) -> str | None:
    """Why an interpreter cannot be started: the path that this user may not use, and the remedy;
    None for every other error."""
    program = str(error.filename or "")
    if error.errno not in _NOT_STARTED or not _INTERPRETER.search(program):
        return None
    real = Path(os.path.realpath(program))
    if error.errno == errno.ENOEXEC:
        cause = f"{real} is no program of this machine"
    elif error.errno == errno.ENOENT:
        cause = f"{real} does not exist"
    else:
        steps = (*reversed(Path(program).parents), *reversed(real.parents), real)
        barrier = next((path for path in steps if not _may_use(path)), real)
        cause = f"{_me()} may not execute {real} ({_permissions(barrier)})"
    if program == sys.executable:
        remedy = "set agentc up with a Python that each of its users may execute (/usr/bin/python3)"
    else:
        remedy = (
            "build the software stack with a Python that its users may execute; "
            "AGENTC_SOFTWARE names the folder of software stacks"
        )
    return f"the interpreter {program} cannot be started: {cause}; {remedy}"


def _may_use(path: Path) -> bool:
    """Whether this user may enter the folder, or execute the file."""
    effective = os.access in os.supports_effective_ids
    return os.access(str(path), os.X_OK, effective_ids=effective)


def free_space(folder: Path) -> str:
    """`0 B of 64 GB free`, with the share of free files where those run out."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        state = os.statvfs(str(folder))
    except OSError:
        return "how much is free cannot be determined"
    free, size = state.f_bavail * state.f_frsize, state.f_blocks * state.f_frsize
    text = f"{_size(free)} of {_size(size)} free"
    if state.f_files and state.f_favail < state.f_files // 100:
        text += f", {state.f_favail} of {state.f_files} files (inodes) free"
    return text


def failing(folder: Path) -> str:
    """Why nothing can be written to a folder now, in words, where its disk or file server fails;
    else "". Of a full one `full_disk_hint` tells."""
    probe = folder / (f".probe-{os.uname().nodename}-{os.getpid()}")
    try:
        descriptor = os.open(str(probe), os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return explain(error, "results", folder) if is_of_disk(error) and not full else ""
    return ""


def full_disk_hint(log: str, folder: Path) -> str:
    """A sentence for a program that failed, when its last words or the file system say that the
    disk is full; else ""."""
    low = log.lower()
    is_full = any(words in low for words in _FULL_LOG)
    try:
        state = os.statvfs(str(folder))
        full = state.f_bavail * state.f_frsize < 1 << 16 and state.f_blocks > 0
    except OSError:
        full = False
    if not (is_full or full):
        return ""
    number = errno.EDQUOT if "quota" in low else errno.ENOSPC
    return explain(OSError(number, os.strerror(number)), "what the program made", folder)


def missing_module_hint(log: str, software: str) -> str:
    """A sentence for a program whose last words are that a module is not there; else ""."""
    found = _NO_MODULE.findall(log)
    if not found:
        return ""
    return (
        f"the module {found[-1]} is missing in its software stack `{software}`, or "
        "cannot be imported:"
        f" `agentc software verify {software} --imports` compares it with what was built; "
        f"`agentc software rm {software}`"
        " removes it, and the next run builds it again"
    )


def _permissions(folder: Path) -> str:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        state = folder.stat()
    except OSError:
        return "its permissions cannot be read"
    return f"{folder} is {stat.filemode(state.st_mode)} {_owner(state)}"


def _owner(state: os.stat_result) -> str:
    import grp
    import pwd

    try:
        user = pwd.getpwuid(state.st_uid).pw_name
    except KeyError:
        user = str(state.st_uid)
    try:
        group = grp.getgrgid(state.st_gid).gr_name
    except KeyError:
        group = str(state.st_gid)
    return f"{user}:{group}"


def _me() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
