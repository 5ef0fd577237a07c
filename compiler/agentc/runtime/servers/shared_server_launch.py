"""Starting copies of a shared server: as a process of its own on this machine, or as a SLURM job.

Whoever needs the server calls `ensure`; what runs already is left alone. A copy is nobody's child:
it ends itself when nobody uses it (`shared_server_host.py`).
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.program.job import read_json, write_json
from agentc.runtime.machine.slurm_nodes import is_away
from agentc.runtime.servers.shared_server_files import (
    LOST_S,
    CopyFolder,
    LeaseRenewal,
    ServerFolder,
    modified,
)
from agentc.runtime.store.layout import StoreLayout

_STARTING_S = 20.0
"""How long a process that was started may take until it holds its lock."""
_SUBMIT_S = 60
"""Others wait for the lock meanwhile. A copy that is submitted twice finds the first one's lock."""
_OPTIONS = {
    "slurm_account": "--account",
    "slurm_partition": "--partition",
    "qos": "--qos",
    "constraint": "--constraint",
    "reservation": "--reservation",
    "clusters": "--clusters",
    "runtime": "--time",
    "nodes": "--nodes",
    "cpus_per_task": "--cpus-per-task",
    "gpu": "--gpus",
    "gres": "--gres",
}
"""Snakemake's names of resources, as its SLURM plugin has them, and options of sbatch."""


class ServerLaunchError(Exception):
    """A copy cannot be started; the message says what to do."""


class SlurmAwayError(ServerLaunchError):
    """SLURM does not answer: it is worth another try."""


def sbatch_options(resources: Mapping[str, str]) -> list[str]:
    """Options of sbatch for resources by Snakemake's names."""
    options = [
        f"{_OPTIONS[name]}={value}"
        for name, value in sorted(resources.items())
        if name in _OPTIONS and value not in ("", "0", "None")
    ]
    if resources.get("gpu_model") not in (None, "", "None"):
        options = [each for each in options if not each.startswith("--gpus=")]
        options.append(f"--gpus={resources['gpu_model']}:{resources.get('gpu') or 1}")
    if resources.get("mem_mb_per_cpu"):
        options.append(f"--mem-per-cpu={resources['mem_mb_per_cpu']}")
    elif resources.get("mem_mb"):
        options.append(f"--mem={resources['mem_mb']}")
    return options + shlex.split(resources.get("slurm_extra") or "")


def describe_launch(
    plan: Path,
    layout: StoreLayout,
    server: str,
    options: Sequence[str] | None,
    across: bool,
    gpus: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """How copies are started: with `options`, as SLURM jobs. `across`: for jobs on other nodes.
    Each leases `gpus` of this machine; None: it has what is visible, as a queue gave it, or as
    `variables` say."""
    argv = [sys.executable, "-m", "agentc.runtime.serve", "host", "--plan", str(plan)]
    argv += ["--store", str(layout.root), "--server", server]
    argv += ["--address", "node" if across else "loopback"]
    argv += [] if gpus is None else ["--gpus", str(gpus)]
    return {
        "how": "local" if options is None else "slurm",
        "argv": argv,
        "options": list(options or ()),
        "variables": dict(variables or {}),
        "cwd": str(Path.cwd()),
    }


def ensure(
    layout: StoreLayout,
    folder: ServerFolder,
    launch: Mapping[str, Any],
    now: float,
    failed_too: bool,
) -> bool:
    """Start each copy that neither runs nor waits in a queue; one that failed only on demand.
    `now` is the file system's time. Whether any was started. Raises LaunchError."""
    folder.prepare()
    started = False
    with folder.exclusive():
        folder.token()
        write_json(folder.launch_file, launch)
        for number, copy in enumerate(folder.copies(), start=1):
            failed = copy.state().get("state") == "failed"
            if (failed_too or not failed) and not runs(layout, folder, copy, now):
                _start(folder, copy, number, launch)
                started = True
    return started


def runs(layout: StoreLayout, folder: ServerFolder, copy: CopyFolder, now: float) -> bool:
    """Whether a copy is at work, about to be, or in a queue."""
    if locked(layout.lock(folder.name_of(copy))):
        return True
    launched = read_json(copy.launched_file)
    if "slurm" in launched:
        state = slurm_state(str(launched["slurm"]))
        # Where SLURM does not say, its own word counts.
        return now - modified(copy.beat_file) < LOST_S if state is None else bool(state)
    if launched.get("host") != os.uname().nodename:
        return False
    young = time.time() - float(launched.get("time") or 0.0) < _STARTING_S
    return young and Path(f"/proc/{launched.get('pid')}").exists()


def waits(copy: CopyFolder) -> str:
    """What a copy that does not run yet waits for: `SLURM job 12 is PENDING`; "" when nothing is
    known to come."""
    launched = read_json(copy.launched_file)
    if "slurm" not in launched:
        return ""
    state = slurm_state(str(launched["slurm"]))
    if state is None:
        return f"SLURM job {launched['slurm']}, whose state is not known here"
    return f"SLURM job {launched['slurm']} is {state}" if state else ""


def slurm_state(job: str) -> str | None:
    """The state of a job in the queue, "" when it is not in the queue, None when SLURM does not
    say (it has no command here, or its controller is away)."""
    if shutil.which("squeue") is None:
        return None
    try:
        asked = subprocess.run(
            ["squeue", "--noheader", "--jobs=" + job, "--format=%T"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if asked.returncode != 0:
        return "" if "Invalid job id" in asked.stderr else None
    return asked.stdout.strip().split("\n")[0]


def end_unused(folder: ServerFolder, layout: StoreLayout) -> bool:
    """End all copies if nobody holds a lease of them, those in a queue above all: a copy that runs
    would see to it by itself. Whether nobody does."""
    clock = LeaseRenewal(folder.path / "clock", {})
    clock.renew()
    if folder.users(clock.now()):
        return False
    for copy in folder.copies():
        withdraw(copy)
        state = copy.state()
        if state.get("host") != os.uname().nodename or state.get("slurm"):
            continue
        with suppress(OSError, ValueError, TypeError, KeyError):
            words = Path(f"/proc/{state['pid']}/cmdline").read_bytes().split(b"\0")
            if b"agentc.runtime.serve" in words and str(layout.root).encode() in words:
                os.kill(state["pid"], signal.SIGTERM)
    return True


def withdraw(copy: CopyFolder) -> None:
    """Take a copy's job out of SLURM's queue, or end it there."""
    launched = read_json(copy.launched_file)
    if "slurm" in launched and shutil.which("scancel") is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                ["scancel", str(launched["slurm"])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=30,
                check=False,
            )


def locked(path: Path) -> bool:
    """Whether somebody holds the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _start(folder: ServerFolder, copy: CopyFolder, number: int, launch: Mapping[str, Any]) -> None:
    copy.clear()
    for stale in (copy.state_file, folder.closing_file):
        with suppress(FileNotFoundError):
            stale.unlink()
    argv = [*launch["argv"], "--copy", str(number)]
    if launch["how"] == "slurm":
        started: dict[str, Any] = {"slurm": _submit(folder, copy, argv, launch)}
    else:
        started = {"pid": _detached_host(argv, copy, launch)}
    write_json(copy.launched_file, {**started, "host": os.uname().nodename, "time": time.time()})


def _detached_host(argv: Sequence[str], copy: CopyFolder, launch: Mapping[str, Any]) -> int:
    return detached(argv, copy.path / "host.log", launch["cwd"], launch.get("variables"))


def detached(
    argv: Sequence[str],
    log: Path,
    cwd: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> int:
    """Start a process that is not our child, in a session of its own, with these variables besides
    ours; returns its pid."""
    # A wrapper adopts and ends what descends from it. A shell that leaves at once makes an orphan
    # of the process, for init to adopt: outside of a supervisor.
    shell = subprocess.run(
        ["/bin/sh", "-c", 'log=$1; shift; "$@" >>"$log" 2>&1 & echo $!', "sh", str(log), *argv],
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    return int(shell.stdout)


def _submit(
    folder: ServerFolder, copy: CopyFolder, argv: Sequence[str], launch: Mapping[str, Any]
) -> str:
    if shutil.which("sbatch") is None:
        raise ServerLaunchError(
            "the shared server {} cannot be started from here: there is no sbatch on {}; run "
            "again from a machine that may submit jobs".format(
                folder.server["id"], os.uname().nodename
            )
        )
    # Of a job around this one nothing may be inherited but where SLURM's configuration is.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLURM_", "SBATCH_", "SLURMD_")) or name == "SLURM_CONF"
    }
    command = ["sbatch", "--parsable", "--requeue", "--open-mode=append"]
    command += ["--job-name", f"agentc-{folder.server['id'].replace('/', '-')}"]
    command += ["--output", str(copy.path / "host.log"), "--chdir", launch["cwd"]]
    command += launch["options"]
    command += ["--wrap", "exec " + " ".join(map(shlex.quote, argv))]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            timeout=_SUBMIT_S,
            check=False,
        )
        failed, message = done.returncode != 0, done.stderr.strip()
    except subprocess.TimeoutExpired:
        failed, message = True, f"sbatch timed out after {_SUBMIT_S} s"
    if failed:
        raise (SlurmAwayError if is_away(message) else ServerLaunchError)(
            "the shared server {} cannot be submitted: {}\n({})".format(
                folder.server["id"], message, " ".join(map(shlex.quote, command[:-2]))
            )
        )
    return done.stdout.strip().split(";")[0]
