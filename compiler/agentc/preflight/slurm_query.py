"""Asks SLURM's commands, each within a time limit and all at once; reads nothing of the answers.

Neighbour: `slurm_facts`, which does.
"""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

TIMEOUT_S = 10.0

QUERIES: Mapping[str, tuple[str, ...]] = {
    "partitions": ("scontrol", "show", "partition", "-o"),
    "nodes": ("sinfo", "-h", "-e", "-o", "%R|%D|%T|%c|%m|%G|%f"),
    "qos": (
        *("sacctmgr", "-n", "-P", "show", "qos"),
        "format=Name,MaxWall,MaxTRES,MaxTRESPU,GrpTRES,MaxJobsPU,MaxSubmitPU,GrpJobs,GrpSubmit",
    ),
    "associations": (
        *("sacctmgr", "-n", "-P", "show", "assoc", "user={user}"),
        "format=Account,Partition,QOS,MaxWall,MaxTRES,MaxJobs,MaxSubmit,GrpJobs,GrpSubmit,DefaultQOS",
    ),
    "user": ("sacctmgr", "-n", "-P", "show", "user", "{user}", "format=User,DefaultAccount"),
    "config": ("scontrol", "show", "config"),
}
"""What is asked, by name. `sinfo` gives a line for each kind of node in each partition and state,
so that ten thousand nodes are a few lines."""


@dataclass(frozen=True, slots=True)
class SlurmAnswer:
    """The text of an answer, or why there is none."""

    text: str = ""
    failure: str | None = None


def ask_slurm(timeout_s: float = TIMEOUT_S) -> dict[str, SlurmAnswer]:
    """The answers to QUERIES."""
    with ThreadPoolExecutor(len(QUERIES)) as pool:
        asked = {name: pool.submit(_ask, words, timeout_s) for name, words in QUERIES.items()}
        return {name: answer.result() for name, answer in asked.items()}


def _ask(words: tuple[str, ...], timeout_s: float) -> SlurmAnswer:
    program = shutil.which(words[0])
    if program is None:
        return SlurmAnswer(failure=f"{words[0]} is not on PATH of this machine")
    argv = [program, *(word.format(user=getpass.getuser()) for word in words[1:])]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return SlurmAnswer(failure=f"`{' '.join(words[:3])}` gave no answer within {timeout_s:g} s")
    except OSError as error:
        return SlurmAnswer(failure=f"{words[0]} cannot be run: {error.strerror}")
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[-1] if lines else f"status {done.returncode}"
        return SlurmAnswer(failure=f"`{' '.join(words[:3])}` failed: {why}")
    return SlurmAnswer(text=done.stdout)
