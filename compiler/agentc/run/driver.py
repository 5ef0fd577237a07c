"""The driver: Snakemake on a compiled directory, in a process group of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentc.run.profile import SLURM, Profile
from agentc.run.slurm_queue import PREFIX
from agentc.runtime import process
from agentc.runtime.layout import StoreLayout

STORE_FLAGS = (
    "--rerun-triggers",
    "mtime",
    "--keep-incomplete",
    "--ignore-incomplete",
    "--nolock",
    "--drop-metadata",
)
"""Existence is validity: Snakemake neither deletes manifests nor doubts them. The same stands in
templates/profiles/*/config.yaml for those who run Snakemake themselves."""

_STOP_S = 20.0
_STOP_QUEUED_S = 5.0
"""Snakemake cancels queued jobs at once, and then waits for its next look at the queue, up to three
minutes: whoever stops it clears the queue himself (slurm_queue.py)."""
JOBS_IN_QUEUE = 100
"""At once, where neither the command line nor the profile says."""


class DriverMissingError(Exception):
    """Snakemake is not installed beside agentc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOptions:
    """`jobs` at once (cores on this machine, jobs in a cluster's queue; None: what the profile
    says, else all cores or a hundred jobs). Names of SLURM jobs carry the run's `token`."""

    jobs: int | None = None
    profile: Profile | None = None
    keep_going: bool = False
    token: str | None = None


def driver_argv(
    directory: Path, layout: StoreLayout, targets: Sequence[Path], options: DriverOptions
) -> list[str]:
    """Snakemake's command line."""
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(directory / "Snakefile")]
    argv += ["--workflow-profile", "none"]
    profile = options.profile
    if profile is None:
        argv += ["--cores", str(options.jobs or os.cpu_count() or 1)]
        argv += ["--scheduler", "greedy", "--latency-wait", "5"]
    else:
        argv += ["--profile", str(profile.file), *_at_once(profile, options.jobs)]
        if profile.executor == SLURM and options.token is not None:
            argv += ["--slurm-jobname-prefix", _job_name(profile, options.token)]
    argv += STORE_FLAGS
    if options.keep_going:
        argv.append("--keep-going")
    argv += ["--config", f"plan={directory / 'plan.json'}", f"store={layout.root}"]
    return [*argv, "--", *map(str, targets)]


def at_once(profile: Profile | None, typed: int | None) -> int | None:
    """How many jobs, or cores, a run may use at a time; None: what the machine has."""
    if profile is None or typed is not None:
        return typed
    own = profile.settings.get("jobs" if profile.queued else "cores")
    if isinstance(own, int) and own > 0:
        return own
    return JOBS_IN_QUEUE if profile.queued else None


class Driver:
    """A running Snakemake. It is killed when this process ends, and its jobs end with it."""

    def __init__(
        self, argv: Sequence[str], directory: Path, log: Path, *, queued: bool = False
    ) -> None:
        if importlib.util.find_spec("snakemake") is None:
            raise DriverMissingError(
                "Snakemake is not installed beside agentc; install it with"
                ' `pip install "agentc[run]"`'
            )
        self._queued = queued
        me = os.getpid()

        def bind_to_parent() -> None:
            # A shell's background job ignores INT, and would hand that down to all jobs.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # KILL, not TERM: at TERM Snakemake waits for its jobs, which may take days. Each job
            # sees its parent go and ends its own processes.
            process.die_with_parent(signal.SIGKILL, me)

        with log.open("ab") as out:
            self._process = subprocess.Popen(
                argv,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=bind_to_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def status(self) -> int | None:
        """Exit status, or None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Stop it and its jobs: INT to the whole group, KILL to what is left after a while."""
        process.signal_group(self.pid, signal.SIGINT)
        deadline = time.monotonic() + (_STOP_QUEUED_S if self._queued else _STOP_S)
        while time.monotonic() < deadline and self._group_is_alive():
            time.sleep(0.05)
        process.signal_group(self.pid, signal.SIGKILL)
        self._process.wait()

    def abandon(self) -> None:
        """End it alone: its jobs in a queue go on."""
        process.signal_group(self.pid, signal.SIGKILL)
        self._process.wait()

    def _group_is_alive(self) -> bool:
        self._process.poll()
        return process.signal_group(self.pid, 0)


def _at_once(profile: Profile, typed: int | None) -> list[str]:
    if typed is None and {"jobs", "cores"} & set(profile.settings):
        return []
    if profile.queued:
        return ["--jobs", str(typed or JOBS_IN_QUEUE)]
    return ["--cores", str(typed or os.cpu_count() or 1)]


def _job_name(profile: Profile, token: str) -> str:
    """The user's own prefix stays in front; the plugin takes up to fifty letters."""
    own = str(profile.settings.get("slurm-jobname-prefix") or "")
    name = PREFIX + token
    return f"{own[: 49 - len(name)]}-{name}" if own else name
