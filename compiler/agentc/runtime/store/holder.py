"""Holder: who works on an object, as written into its owner file, and whether that one is gone.

`claim.py` decides with it whether a claim may be taken over.
"""

from __future__ import annotations

import binascii
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STALE_VARIABLE = "AGENTC_LOCK_STALE_S"
STALE_S = 60.0
"""A holder that was not heard of for so long counts as gone, wherever it runs."""
BEATS = 6
"""A holder is heard of so many times in that span."""

_SLURM = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT")


def stale_seconds() -> float:
    """The span that this process declares in its owner files; others go by what is declared."""
    try:
        return max(0.5, float(os.environ[STALE_VARIABLE]))
    except (KeyError, ValueError):
        return STALE_S


def describe_self(name: str, needs: Sequence[str]) -> dict[str, Any]:
    """The record of this process. `needs` are the objects that it is about to read."""
    return {
        "object": name,
        "nonce": binascii.hexlify(os.urandom(8)).decode("ascii"),
        "host": os.uname().nodename,
        "boot": _boot(),
        "pids": _pid_namespace(),
        "pid": os.getpid(),
        "since": start_time(os.getpid()),
        "user": _user(),
        "slurm": {variable: os.environ[variable] for variable in _SLURM if variable in os.environ},
        "stale_s": stale_seconds(),
        "flock": False,
        "device": None,
        "needs": list(needs),
        "time": time.time(),
    }


def words(record: Mapping[str, Any]) -> str:
    """`alice's process 4711 on node17 (SLURM job 99)`."""
    if not record:
        return "somebody"
    text = "{}'s process {} on {}".format(
        record.get("user") or "somebody", record.get("pid"), record.get("host"),
    )  # fmt: skip
    job = (record.get("slurm") or {}).get("SLURM_JOB_ID")
    return text + (f" (SLURM job {job})" if job else "")


def same_kernel(record: Mapping[str, Any]) -> bool:
    """Whether the holder runs (or ran) under the kernel that runs this process, since its last
    boot: containers of one machine do, two machines never."""
    return bool(record.get("boot")) and record.get("boot") == _boot()


def is_gone(record: Mapping[str, Any]) -> bool:
    """Whether its process is known to have ended. About other machines nothing is known, but for
    an earlier start of this very SLURM job."""
    if same_kernel(record) and record.get("pids") == _pid_namespace():
        pid = record.get("pid")
        return isinstance(pid, int) and start_time(pid) != record.get("since")
    return _is_my_earlier_start(record.get("slurm") or {})


def start_time(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None when there is none of that number.
    With it a number that was given out again is not taken for the old process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in ("Z", "X") else fields[19]


def decode(text: str) -> dict[str, Any]:
    """A record from the text of an owner file; empty when the text is none (yet)."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_my_earlier_start(slurm: Mapping[str, str]) -> bool:
    mine = {variable: os.environ.get(variable) or "0" for variable in _SLURM}
    theirs = {variable: slurm.get(variable) or "0" for variable in _SLURM}
    if mine["SLURM_JOB_ID"] == "0" or mine["SLURM_JOB_ID"] != theirs["SLURM_JOB_ID"]:
        return False
    try:
        return int(theirs["SLURM_RESTART_COUNT"]) < int(mine["SLURM_RESTART_COUNT"])
    except ValueError:
        return False


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        return ""


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
