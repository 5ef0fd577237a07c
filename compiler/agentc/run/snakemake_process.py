"""Snakemake on a compiled directory, as a process group of its own: its command line, its process,
and its scratch folder, which is removed at the end of the run or, after a kill, by the next run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentc.placement.profile import SLURM, Profile
from agentc.program.child import die_with_parent
from agentc.resources import install_command
from agentc.run.slurm_queue import ENDS, PREFIX, TAKEN, SubmitLimit
from agentc.runtime.machine import process
from agentc.runtime.software import variables
from agentc.runtime.store.layout import StoreLayout

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
    says, else all cores or a hundred jobs). Names of SLURM jobs carry the run's `token`. Jobs on
    this machine have no more than `gpus` at once (None: nobody counts), and at least `cores` are
    given to them. In `ends` Snakemake finds ends of SLURM jobs (slurm_plugin.py). Where SLURM has a
    `limit` on the jobs in its queue, the run keeps to it, and to `at_most` jobs there. Jobs of the
    killed runs with the tokens `killed` are taken over; Snakemake finds them in `taken_over`."""

    jobs: int | None = None
    profile: Profile | None = None
    keep_going: bool = False
    token: str | None = None
    gpus: int | None = None
    cores: int = 0
    ends: Path | None = None
    limit: SubmitLimit | None = None
    at_most: int | None = None
    killed: tuple[str, ...] = ()
    taken_over: Path | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """Tokens in the names of SLURM jobs that this run waits for."""
        return (*(() if self.token is None else (self.token,)), *self.killed)


def driver_argv(
    directory: Path, layout: StoreLayout, targets: Sequence[Path], options: DriverOptions
) -> list[str]:
    """Snakemake's command line."""
    profile = options.profile
    if options.token is not None and profile is not None and profile.executor == SLURM:
        argv = [sys.executable, "-m", "agentc.run.slurm_plugin"]
        argv += [] if options.ends is None else [ENDS, str(options.ends)]
        argv += [] if options.taken_over is None else [TAKEN, str(options.taken_over)]
    else:
        argv = [sys.executable, "-m", "snakemake"]
    argv += ["--snakefile", str(directory / "Snakefile")]
    argv += ["--workflow-profile", "none"]
    if profile is None:
        argv += ["--cores", str(_cores(options))]
        argv += ["--scheduler", "greedy", "--latency-wait", "5"]
    else:
        argv += ["--profile", str(profile.file), *_at_once(profile, options)]
        if profile.executor == SLURM and options.token is not None:
            argv += ["--slurm-jobname-prefix", _job_name(profile, options.token)]
    argv += _gpus(options)
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


def require_driver() -> None:
    """Raises DriverMissingError, before anything is built for a run that cannot begin."""
    if importlib.util.find_spec("snakemake") is None:
        raise DriverMissingError(
            f"Snakemake is not installed beside agentc; `{install_command()}` installs both"
        )


class Driver:
    """A running Snakemake. It is killed when this process ends, and its jobs end with it."""

    def __init__(
        self,
        argv: Sequence[str],
        directory: Path,
        log: Path,
        *,
        queued: bool = False,
        scratch_folder: Path | None = None,
    ) -> None:
        self._queued = queued
        self._frozen = False
        me = os.getpid()
        environ: Mapping[str, str] = os.environ
        if scratch_folder is not None:
            scratch_folder.mkdir(parents=True, exist_ok=True)
            environ = variables.moved_to(str(scratch_folder), os.environ)

        def bind_to_parent() -> None:
            # A shell's background job ignores INT, and would hand that down to all jobs.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # KILL, not TERM: at TERM Snakemake waits for its jobs, which may take days. Each job
            # sees its parent go and ends its own processes.
            die_with_parent(signal.SIGKILL, me)

        with log.open("ab") as out:
            self._process = subprocess.Popen(
                argv,
                cwd=directory,
                env=environ,
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
        if self._frozen:
            self.abandon()
            return
        process.signal_group(self.pid, signal.SIGINT)
        deadline = time.monotonic() + (_STOP_QUEUED_S if self._queued else _STOP_S)
        while time.monotonic() < deadline and self._group_is_alive():
            time.sleep(0.05)
        process.signal_group(self.pid, signal.SIGKILL)
        self._process.wait()

    def freeze(self) -> None:
        """Let it do nothing any more; its process stays, and what lives as long as that."""
        process.signal_group(self.pid, signal.SIGSTOP)
        self._frozen = True

    def abandon(self) -> None:
        """End it alone: its jobs in a queue go on."""
        process.signal_group(self.pid, signal.SIGKILL)
        self._process.wait()

    def _group_is_alive(self) -> bool:
        self._process.poll()
        return process.signal_group(self.pid, 0)


def _at_once(profile: Profile, options: DriverOptions) -> list[str]:
    typed = options.jobs
    if profile.queued and options.at_most is not None:
        return ["--jobs", str(min(at_once(profile, typed) or JOBS_IN_QUEUE, options.at_most))]
    if typed is None and {"jobs", "cores"} & set(profile.settings):
        own = profile.settings.get("cores")
        short = isinstance(own, int) and own < options.cores and not profile.queued
        return ["--cores", str(options.cores)] if short else []
    if profile.queued:
        return ["--jobs", str(typed or JOBS_IN_QUEUE)]
    return ["--cores", str(_cores(options))]


def _cores(options: DriverOptions) -> int:
    return max(options.jobs or os.cpu_count() or 1, options.cores)


def _gpus(options: DriverOptions) -> list[str]:
    """What a profile says of resources is said once more: of two the command line's holds."""
    if options.gpus is None:
        return []
    said = {} if options.profile is None else options.profile.settings.get("resources") or {}
    words = [f"{name}={value}" for name, value in said.items()] if isinstance(said, dict) else said
    words = [str(word) for word in ([words] if isinstance(words, str) else words)]
    if any(word.startswith("gpu=") for word in words):
        return []
    return ["--resources", *words, f"gpu={options.gpus}"]


def _job_name(profile: Profile, token: str) -> str:
    """The user's own prefix stays in front; the plugin takes up to fifty letters."""
    own = str(profile.settings.get("slurm-jobname-prefix") or "")
    name = PREFIX + token
    return f"{own[: 49 - len(name)]}-{name}" if own else name


_PREFIX = "agentc-"
_OF_EXECUTORS = "tmp.*"
"""Folders that each Snakemake makes for scripts of jobs, and leaves where it is killed."""


def scratch_folder(directory: Path, token: str) -> Path:
    """That of a run with this token; its name says whose it is."""
    return directory / ".snakemake" / f"{_PREFIX}{token}"


@contextmanager
def removed_scratch(directory: Path, *tokens: str) -> Iterator[None]:
    """Remove those of these runs when the block is left, however it ends."""
    try:
        yield
    finally:
        for token in tokens:
            shutil.rmtree(scratch_folder(directory, token), ignore_errors=True)


def remove_leftovers(directory: Path, alive: Collection[str]) -> None:
    """Remove what runs have left that are over: all but those with these tokens. Nothing of
    Snakemake's own where there are others, for nobody knows whose it is."""
    for folder in (directory / ".snakemake").glob(f"{_PREFIX}*"):
        if folder.name.removeprefix(_PREFIX) not in alive:
            shutil.rmtree(folder, ignore_errors=True)
    if not alive:
        for folder in (directory / ".snakemake").glob(_OF_EXECUTORS):
            shutil.rmtree(folder, ignore_errors=True)
