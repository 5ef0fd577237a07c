"""Keeps a process, and whatever it starts, from opening sockets of a network: a filter of system
calls. It is no box: files stay readable. Neighbours: `seccomp.py`, which makes such filters for
code that models wrote, and `lockdown.py`, which boxes that code.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Callable

from agentc.program.lockdown import install_filter
from agentc.program.seccomp import UnknownMachineError, local_sockets_program


class NoNetworkError(Exception):
    """This machine cannot refuse a process the network; the message says why."""


def refusing_network() -> Callable[[], None]:
    """What a child calls before it starts its program: from then on sockets are those of this
    machine's own processes alone (AF_UNIX). Raises NoNetworkError where that cannot be had."""
    if not sys.platform.startswith("linux"):
        raise NoNetworkError("system calls are filtered on Linux alone")
    try:
        program = local_sockets_program()
    except UnknownMachineError as error:
        raise NoNetworkError(str(error)) from None
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if _tried(lambda: install_filter(library, program)):
        return lambda: install_filter(library, program)
    raise NoNetworkError("the kernel takes no filter of system calls (seccomp)")


def _tried(install: Callable[[], None]) -> bool:
    """Whether a child of this process can install it."""
    child = os.fork()
    if child == 0:
        try:
            install()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
