"""run_plan: from a compiled directory to results, with everything that people see on the way."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

from agentc.cost.estimate import Estimate
from agentc.plan.work import Work, object_of
from agentc.run import claims, outcome
from agentc.run.driver import Driver, DriverMissingError, DriverOptions, driver_argv
from agentc.run.leftovers import end_leftover_processes, remove_stale_folders
from agentc.run.observe import Observer, Seen
from agentc.run.plain_view import PlainView
from agentc.run.record import Record
from agentc.run.report_page import page_with_costs
from agentc.run.wording import counted, duration
from agentc.runtime.environment import (
    SoftwareEnvironmentError,
    ensure_environment,
    read_complete,
)
from agentc.store.paths import RunFolder

EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED = 0, 3, 130
_LOOK_S = 0.25
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DRIVER_LOG = "snakemake.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run; `plain` asks for lines even on a terminal, `colour` is for the claims.
    `estimates` (by job id) are kept with the record of the run, `expected` is their sum in words.
    """

    driver: DriverOptions
    plain: bool = False
    colour: bool = False
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    expected: str | None = None


class View(Protocol):
    """What a run is shown on."""

    def show(self, jobs: Sequence[Seen]) -> None: ...

    def say(self, text: str, *, passing: bool = False) -> None: ...


class _StopError(Exception):
    """A signal asked to stop."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def run_plan(work: Work, directory: Path, options: RunOptions) -> int:
    """Make what is missing. `directory` holds the compiled plan. Returns the exit code."""
    began = time.time()
    layout, name = work.layout, str(work.document["name"])
    record = Record(RunFolder.of(layout, name), work, began)
    record.open((directory / "plan.json").read_text(encoding="utf-8"), directory)
    record.expect(options.estimates)
    ended = end_leftover_processes(layout)
    if ended:
        print(f"ended {ended} processes that a killed run had left behind")
    sessions = [f"session/{session['key']}" for session in work.document.get("sessions") or []]
    remove_stale_folders(layout, [object_of(job) for job in work.needed], sessions)
    if not work.missing:
        print(f"{name}: nothing to do, {_there(work)}")
        code = _show_results(work, options)
        record.close(code, [])
        return code
    print(f"{name}: {counted(len(work.missing), 'job')} to run, {_there(work)}")
    if options.expected:
        print(f"estimate: {options.expected}")
    observer = Observer(layout, work.missing, since=began)
    try:
        with _stop_signals(), _view(name, options) as view:
            _build_environments(work, directory, view)
            code = _drive(work, directory, options.driver, observer, view)
    except _StopError as stop:
        code = 128 + stop.number
        print("interrupted; finished work is kept, run again to go on", file=sys.stderr)
    except (SoftwareEnvironmentError, DriverMissingError) as error:
        code = EXIT_FAILED
        print(f"agentc: {error}", file=sys.stderr)
    else:
        seen = observer.look()
        if code:
            text = outcome.describe_failures(layout, work.missing, seen, directory / DRIVER_LOG)
            print(f"\n{text}", file=sys.stderr)
        else:
            expected = f"; expected: {options.expected}" if options.expected else ""
            print(f"{name}: done in {time.time() - began:.0f} s{expected}")
            code = _show_results(work, options)
    record.close(code, [one.id for one in observer.look() if one.state in ("failed", "killed")])
    return code


def _drive(
    work: Work, directory: Path, options: DriverOptions, observer: Observer, view: View
) -> int:
    argv = driver_argv(directory, work.layout, work.manifests(), options)
    driver = Driver(argv, directory, directory / DRIVER_LOG)
    try:
        while driver.status() is None:
            began = time.monotonic()
            view.show(observer.look())
            # A look at ten thousand jobs takes a while; nine tenths of the time is for the jobs.
            time.sleep(max(_LOOK_S, 9 * (time.monotonic() - began)))
    except BaseException:
        view.say("stopping the jobs at work")
        with _deaf():
            driver.stop()
        raise
    view.show(observer.look())
    complete = all(map(work.layout.is_published, work.wanted))
    return EXIT_DONE if driver.status() == 0 and complete else EXIT_FAILED


def _build_environments(work: Work, directory: Path, view: View) -> None:
    """Build the software environments that are not there yet, before jobs would wait for them."""
    for name in work.environments():
        known = work.document["environments"][name]
        if read_complete(work.layout.environment(known["lock"])) is not None:
            continue
        lock = (directory / known["file"]).read_bytes().decode("utf-8")
        title = f"software environment {name}"
        view.say(f"{title}: building (once for all experiments)")

        def report(line: str, title: str = title) -> None:
            view.say(f"{title}: {line}", passing=True)

        _, built = ensure_environment(work.layout, known["lock"], lock, report)
        view.say(f"{title}: ready after {duration(built['seconds'])}")


def _there(work: Work) -> str:
    return f"{counted(len(work.present), 'result')} in the store already"


def _show_results(work: Work, options: RunOptions) -> int:
    """Print what the run found; the exit code is that of a gate that it met."""
    found = outcome.tables(work.document, work.layout)
    if found:
        print(f"\n{found}")
    verdicts = claims.find_verdicts(work.document, work.layout)
    if verdicts is not None:
        print(f"\n{claims.render_verdicts(verdicts, colour=options.colour)}")
    page = outcome.report_path(work.document, work.layout)
    if page is not None:
        print(f"\nreport: {page_with_costs(page, work)}")
    judged = any(job["produces"] == "Verdicts" for job in work.needed)
    shut = claims.shut_gates(verdicts) if verdicts is not None and judged else []
    if shut:
        print(claims.gate_message(shut), file=sys.stderr)
    return claims.EXIT_CLAIM if shut else EXIT_DONE


@contextmanager
def _view(name: str, options: RunOptions) -> Iterator[View]:
    if options.plain or not sys.stdout.isatty():
        with PlainView(sys.stdout) as plain:
            yield plain
        return
    from agentc.run.live_view import LiveView

    with LiveView(name) as live:
        yield live


@contextmanager
def _stop_signals() -> Iterator[None]:
    """INT, TERM and HUP raise _StopError in this block (in the main thread)."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _StopError(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What was ignored (HUP under nohup) stays so.
    heeded = [one for one in _STOPPING if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore further impatient signals while jobs are being stopped; KILL still works."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
