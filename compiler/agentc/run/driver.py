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

from agentc import resources
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


class DriverMissingError(Exception):
    """Snakemake is not installed beside agentc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOptions:
    """`jobs` at once (cores on this machine, jobs in a cluster's queue); `profile` is a name of a
    shipped profile, a folder, or a profile known to Snakemake."""

    jobs: int
    profile: str | None = None
    keep_going: bool = False


def driver_argv(
    directory: Path, layout: StoreLayout, targets: Sequence[Path], options: DriverOptions
) -> list[str]:
    """Snakemake's command line."""
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(directory / "Snakefile")]
    if options.profile is None:
        argv += ["--workflow-profile", "none", "--cores", str(options.jobs)]
        argv += ["--scheduler", "greedy", "--latency-wait", "5"]
    else:
        argv += [*_profile(options.profile), "--jobs", str(options.jobs)]
    argv += STORE_FLAGS
    if options.keep_going:
        argv.append("--keep-going")
    argv += ["--config", f"plan={directory / 'plan.json'}", f"store={layout.root}"]
    return [*argv, "--", *map(str, targets)]


class Driver:
    """A running Snakemake. It is killed when this process ends, and its jobs end with it."""

    def __init__(self, argv: Sequence[str], directory: Path, log: Path) -> None:
        if importlib.util.find_spec("snakemake") is None:
            raise DriverMissingError(
                "Snakemake is not installed beside agentc; install it with"
                ' `pip install "agentc[run]"`'
            )
        me = os.getpid()

        def bind_to_parent() -> None:
            # A shell's background job ignores INT, and would hand that down to all jobs.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # KILL, not TERM: at TERM Snakemake waits for its jobs, which may take days. Each job
            # sees its parent go and ends its own processes.
            process.die_with_parent(signal.SIGKILL, me)

        with log.open("wb") as out:
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
        deadline = time.monotonic() + _STOP_S
        while time.monotonic() < deadline and self._group_is_alive():
            time.sleep(0.05)
        process.signal_group(self.pid, signal.SIGKILL)
        self._process.wait()

    def _group_is_alive(self) -> bool:
        self._process.poll()
        return process.signal_group(self.pid, 0)


def _profile(name: str) -> list[str]:
    shipped = resources.data_directory() / "templates" / "profiles" / name
    if shipped.is_dir() and "/" not in name:
        return ["--workflow-profile", str(shipped)]
    folder = Path(name)
    if folder.is_dir():
        return ["--workflow-profile", str(folder.absolute())]
    return ["--workflow-profile", "none", "--profile", name]
