"""What a process that a program starts calls first: it must not outlive the program."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Optional

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: int, parent: Optional[int] = None) -> None:
    """Ask the kernel to send this process the signal when its parent ends.

    `parent` is the expected parent; when it is gone already, this process ends at once.
    """
    if not sys.platform.startswith("linux"):
        return
    expected = os.getppid() if parent is None else parent
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != expected:
        os._exit(128 + int(number))
