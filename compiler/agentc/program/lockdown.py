"""Runs inside the box, before anything else: takes every right from its own process for good.

It is sent there as text (`process.py`), so it imports nothing of agentc, and as little as can be:
each import is time of every start. `lock_down` raises where a step fails, and nothing runs then.
"""

from __future__ import annotations

import ctypes
import os
import resource
from typing import Any, Dict, Sequence, Tuple

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_NO_NEW_PRIVILEGES, _SET_SECCOMP = 1, 4, 38, 22
_SECCOMP_FILTER = 2
_SIGKILL = 9
_WRITE_FILE, _READ_FILE, _READ_DIRECTORY = 1 << 1, 1 << 2, 1 << 3


def lock_down(orders: Dict[str, Any]) -> int:
    """Returns the descriptor that answers go to: where standard output went before. Orders are
    `limits` (memory, seconds, files), `landlock` (None, or the files that may be read), `parent`
    (None, or the process that it must not outlive), `kept` (descriptors that stay) and `filter`."""
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    library.syscall.restype = ctypes.c_long
    answers = _only_the_answers(orders["limits"]["files"], orders["kept"])
    _limit(orders["limits"])
    if orders["parent"] is not None:
        _check(library.prctl(_SET_DEATH_SIGNAL, _SIGKILL, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
        if os.getppid() != orders["parent"]:
            raise OSError("anyone who started it is gone")
    # Its files in /proc are root's then, descriptors and memory too, and nothing traces it. What it
    # forks inherits that.
    _check(library.prctl(_SET_DUMPABLE, 0, 0, 0, 0), "prctl(PR_SET_DUMPABLE)")
    _check(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    if orders["landlock"] is not None:
        _see_only(library, orders["landlock"])
    _install(library, _described(orders["filter"]))
    os.dup2(0, 2)  # until now a step that fails has said so there
    return answers


def install_filter(library: Any, program: bytes) -> None:
    """A filter of system calls alone, of a process that keeps all else. Raises OSError."""
    _check(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    _install(library, _described(program))


def _only_the_answers(most: int, kept: Sequence[int]) -> int:
    """And standard error, which closes at the end: 0 and 1 are /dev/null. `kept` are above 3."""
    answers = os.dup2(1, 3, inheritable=False)
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    first = 4
    for stays in sorted(kept):
        os.closerange(first, stays)
        first = stays + 1
    os.closerange(first, max(most, 1024, first))
    return answers


def _limit(limits: Dict[str, int]) -> None:
    # Processes are not limited: that number is the user's on the whole machine. They are refused.
    for kind, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, limits["seconds"]),
        (resource.RLIMIT_NOFILE, limits["files"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        allowed = resource.getrlimit(kind)[1]
        value = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (value, value))


def _see_only(library: Any, landlock: Dict[str, Any]) -> None:
    """Of all files only these; no port, no abstract socket and no signal, where the kernel's
    version of Landlock knows of them (the filter refuses them anyway)."""
    version: int = landlock["version"]
    rights = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15)):
        rights |= right if version >= since else 0
    ports = 3 if version >= 4 else 0
    scopes = 3 if version >= 6 else 0
    words = [rights] + [ports] * (version >= 4) + [scopes] * (version >= 6)
    rule = b"".join(word.to_bytes(8, "little") for word in words)
    ruleset = library.syscall(_LANDLOCK_CREATE, rule, ctypes.c_size_t(len(rule)), 0)
    _check(ruleset, "landlock_create_ruleset")
    for path, right in _granted(landlock):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        grant = right.to_bytes(8, "little") + place.to_bytes(4, "little")
        _check(library.syscall(_LANDLOCK_ADD, ruleset, 1, grant, 0), "landlock_add_rule " + path)
        os.close(place)
    _check(library.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _granted(landlock: Dict[str, Any]) -> Sequence[Tuple[str, int]]:
    granted = [("/dev/null", _READ_FILE | _WRITE_FILE), ("/dev/urandom", _READ_FILE)]
    for path in landlock["readable"]:
        folder = os.path.isdir(path)
        granted.append((path, _READ_FILE | _READ_DIRECTORY if folder else _READ_FILE))
    return granted


def _described(program: bytes) -> Any:
    """A filter as the kernel takes it."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]

    return Program(len(program) // 8, program)


def _install(library: Any, described: Any) -> None:
    pointer = ctypes.addressof(described)
    result = library.prctl(_SET_SECCOMP, _SECCOMP_FILTER, pointer, 0, 0)
    _check(result, "prctl(PR_SET_SECCOMP)")


def _check(result: int, step: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (step, os.strerror(number)))
