"""What SLURM's `scontrol show` tells of a job or a node, asked on the node itself.

Neighbours: `prologue.py` (what a job has got), `rendezvous.py` (where its nodes are).
"""

from __future__ import annotations

import shutil
import subprocess

_PATIENCE_S = 10.0


def shown(kind: str, name: str) -> str:
    """Its line of `Name=value` words; "" where there is no `scontrol`, or no answer."""
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return ""
    try:
        return subprocess.run(
            [scontrol, "show", kind, "-o", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""
