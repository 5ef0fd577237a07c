"""Which boxes this machine offers, why not the others, and what would help.

A box is offered when a process really started in it: versions and settings of kernels say less.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import NamedTuple

from agentc.runtime.sandbox.boxes import (
    KINDS,
    BoxedInterpreter,
    CodeBox,
    NoInterpreterError,
    boxed_interpreter,
    bubblewrap_version,
)
from agentc.runtime.sandbox.process import BoxedLimits, BoxedProcess, BoxError

_LANDLOCK_CREATE, _VERSION_ASKED = 444, 1
_NOTHING = "def main(answers, data):\n    pass\n"
_INSTALL = (
    "install it: `apt install bubblewrap` (Debian, Ubuntu), `dnf install bubblewrap` (Fedora, RHEL)"
)
_NAMESPACES = (
    "allow user namespaces: `sysctl user.max_user_namespaces` above 0, on Ubuntu 24.04 or newer an "
    "AppArmor profile for bwrap, in a container a seccomp profile that lets it make them"
)
_KERNEL = (
    "a kernel of 5.13 or newer with CONFIG_SECURITY_LANDLOCK, `landlock` among what "
    "/sys/kernel/security/lsm lists, and a container that does not refuse it"
)

_OTHER_USER = "run it as a user who is not root: this root may not become nobody"

_OTHER_PYTHON = "the box is there, and its Python does not start in it: take that of the system"


class BoxProbe(NamedTuple):
    """What came of trying one kind of box. `reason` and `remedy` say why there is none."""

    kind: str
    box: CodeBox | None
    reason: str = ""
    remedy: str = ""


class NoBoxError(Exception):
    """This machine offers no box: the message says why, and how to have one."""


def probe(interpreter: BoxedInterpreter | None = None) -> tuple[BoxProbe, ...]:
    """Each kind of box, the better one first."""
    return tuple(probe_kind(kind, interpreter) for kind in KINDS)


def choose_box(wanted: str = "auto", interpreter: BoxedInterpreter | None = None) -> CodeBox:
    """The first kind that works, or the one that is wanted. Raises NoBoxError: code that models
    wrote runs in a box or not at all."""
    tried: list[BoxProbe] = []
    for kind in KINDS if wanted == "auto" else (wanted,):
        tried.append(probe_kind(kind, interpreter))
        if tried[-1].box is not None:
            return tried[-1].box
    raise NoBoxError(refusal(tried))


def refusal(tried: list[BoxProbe]) -> str:
    """Why no box is there, a line for each kind."""
    lines = ["no sandbox here for code that models wrote, and without one none of it is run:"]
    lines += [f"  {each.kind}: {each.reason}; {each.remedy}" for each in tried]
    return "\n".join(lines)


def probe_kind(kind: str, interpreter: BoxedInterpreter | None = None) -> BoxProbe:
    """Start an empty process in such a box."""
    try:
        found = interpreter or boxed_interpreter()
    except NoInterpreterError as error:
        return BoxProbe(kind, None, str(error), error.remedy)
    if kind == "bubblewrap":
        return _bubblewrap(found)
    if kind == "landlock":
        return _landlock(found)
    raise ValueError(f"no such box: {kind}; there are auto, {', '.join(KINDS)}")


def _bubblewrap(interpreter: BoxedInterpreter) -> BoxProbe:
    try:
        version = bubblewrap_version()
    except OSError as error:
        return BoxProbe("bubblewrap", None, str(error), _INSTALL)
    if version is None:
        return BoxProbe("bubblewrap", None, "bwrap is not installed", _INSTALL)
    return _tried(CodeBox("bubblewrap", version, interpreter), _NAMESPACES)


def _landlock(interpreter: BoxedInterpreter) -> BoxProbe:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    version = library.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _VERSION_ASKED)
    if version < 1:
        number = ctypes.get_errno()
        reason = {
            errno.ENOSYS: "the kernel (%s) has none, or a container refuses it",
            errno.EOPNOTSUPP: "the kernel (%s) was started without it",
        }.get(number, "the kernel (%s) says: " + os.strerror(number))
        return BoxProbe("landlock", None, reason % os.uname().release, _KERNEL)
    return _tried(CodeBox("landlock", str(version), interpreter), _KERNEL)


def _tried(box: CodeBox, remedy: str) -> BoxProbe:
    try:
        with BoxedProcess(box, _NOTHING, None, BoxedLimits()):
            return BoxProbe(box.kind, box)
    except BoxError as error:
        if "setpriv: " in str(error):  # in some containers only one user is there
            remedy = _OTHER_USER
        elif box.interpreter.program in str(error):
            remedy = _OTHER_PYTHON
        return BoxProbe(box.kind, None, str(error), remedy)
