"""What SLURM's `scontrol show` tells of a job or a node, asked on the node itself; and how its
commands say that a daemon is away.

Neighbours: `prologue.py` (what a job has got), `rendezvous.py` (where its nodes are).
"""

from __future__ import annotations

import re
import shutil
import subprocess

_PATIENCE_S = 10.0
_AWAY = re.compile(
    r"unable to contact slurm|connect failure|connection (refused|reset|timed out)|"
    r"timed out|zero bytes were transmitted|temporarily un|standby mode|not responding|"
    r"slurm_persist_conn|problem talking to|transport endpoint",
    re.IGNORECASE,
)

_known: dict[tuple[str, str, str], str] = {}


def is_away(output: str) -> bool:
    """Whether these words of a command say that the controller or the accounting daemon does not
    answer, so that it is worth another try."""
    return _AWAY.search(output) is not None


def shown(kind: str, name: str) -> str:
    """Its line of `Name=value` words; "" where there is no `scontrol`, or no answer. SLURM is asked
    once for each in a process."""
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return ""
    known = _known.get((scontrol, kind, name)) or _ask(scontrol, kind, name)
    _known[scontrol, kind, name] = known
    return known


def _ask(scontrol: str, kind: str, name: str) -> str:
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
