"""Starts a training job with its number of processes, and ties worker processes to their parent.

One process trains in the job itself; several are started by `torch.distributed.run`, which takes
the job's place. (`accelerate launch --cpu --num_processes 2` silently runs one process.)
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

_PR_SET_PDEATHSIG = 1


def relaunch(module: str, placement: Mapping[str, Any], job_file: str) -> None:
    """Replace this process by the launcher when the job wants several and none is running yet."""
    processes = int(placement.get("processes") or 1)
    if processes == 1 or "LOCAL_RANK" in os.environ:
        return
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(processes),
        "--module",
        module,
        job_file,
    ]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, command)


def die_with_parent() -> None:
    """In a worker: ask the kernel to kill this process when the launcher dies. Workers live in
    sessions of their own, so a signal to the job's process group does not reach them."""
    if "LOCAL_RANK" not in os.environ or not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
