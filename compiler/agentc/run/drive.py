"""Drives Snakemake through a plan: shows what happens, stops it when told to, and submits again
what the cluster cut off. Neighbours: driver.py (one Snakemake), orchestrate.py (all of a run)."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from agentc.plan.work import Work
from agentc.run.driver import Driver, DriverOptions, driver_argv
from agentc.run.observe import Observer, Seen
from agentc.run.resubmission import Resubmissions
from agentc.run.servers import ServerWatch, release_servers
from agentc.run.slurm_endings import read_endings
from agentc.runtime.stopping import STOPPING
from agentc.runtime.visible import await_published, patience

EXIT_DONE, EXIT_FAILED = 0, 3
DRIVER_LOG = "snakemake.log"
LOOK_S = 0.25


class View(Protocol):
    """What a run is shown on."""

    def show(self, jobs: Sequence[Seen]) -> None: ...

    def say(self, text: str, *, passing: bool = False) -> None: ...


def drive(
    work: Work,
    directory: Path,
    options: DriverOptions,
    observer: Observer,
    servers: ServerWatch,
    view: View,
) -> int:
    """Run Snakemake until the plan is done, or something fails by its own fault; returns the exit
    code. Jobs that the cluster ended are submitted again, within bounds (resubmission.py)."""
    log = directory / DRIVER_LOG
    log.unlink(missing_ok=True)
    resubmissions = Resubmissions(work)
    while True:
        read = log.stat().st_size if log.exists() else 0
        code = _drive_once(work, directory, options, observer, servers, view)
        if code == EXIT_DONE or not _is_queued(options):
            return code
        with log.open("rb") as file:
            file.seek(read)
            endings = read_endings(file.read().decode("utf-8", "replace"), work)
        if not endings or not all(ending.again for ending in endings):
            return code
        decided = [resubmissions.decide(ending) for ending in endings]
        for _, said in decided:
            view.say(said)
        if not all(again for again, _ in decided):
            return code


def _drive_once(
    work: Work,
    directory: Path,
    options: DriverOptions,
    observer: Observer,
    servers: ServerWatch,
    view: View,
) -> int:
    argv = driver_argv(directory, work.layout, work.manifests(), options)
    driver = Driver(argv, directory, directory / DRIVER_LOG, queued=_is_queued(options))
    try:
        while driver.status() is None:
            began = time.monotonic()
            view.show(observer.look())
            for line in servers.news():
                view.say(line)
            # A look at ten thousand jobs takes a while; nine tenths of the time is for the jobs.
            time.sleep(max(LOOK_S, 9 * (time.monotonic() - began)))
    except BaseException:
        view.say("stopping the jobs at work")
        with deaf():
            driver.stop()
            _release(work, driver, view)
        raise
    _release(work, driver, view)
    view.show(observer.look())
    # What another node published a moment ago may not show here yet.
    delay = patience(work.layout) if driver.status() == 0 else 0.0
    complete = all(await_published(work.layout, name, delay) for name in work.wanted)
    return EXIT_DONE if driver.status() == 0 and complete else EXIT_FAILED


def _release(work: Work, driver: Driver, view: View) -> None:
    for name in release_servers(work.layout, work.document, driver.pid):
        view.say(f"{name} is still ending; it gives up when its lease has run out")


def _is_queued(options: DriverOptions) -> bool:
    return options.profile is not None and options.profile.queued


@contextmanager
def deaf() -> Iterator[None]:
    """Ignore further impatient signals while jobs are being stopped; KILL still works."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
