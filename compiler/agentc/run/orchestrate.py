"""run_plan: from a compiled directory to results, with everything that people see on the way."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from agentc.cost.estimate import Estimate
from agentc.exit_codes import (
    EXIT_CLAIM,
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_STORE,
)
from agentc.placement.profile import SLURM
from agentc.plan.work import Work, object_of, refresh_work
from agentc.run import claims, leftovers, outcome, slurm_endings
from agentc.run.active_runs import ActiveRun, active_runs, attended
from agentc.run.drive import (
    DRIVER_LOG,
    OWN_LOG,
    POLL_S,
    QueueWords,
    RunView,
    drive,
    ignore_signals,
)
from agentc.run.leftovers import end_leftover_processes, remove_stale_folders
from agentc.run.observe import Observer, ServerWatch
from agentc.run.past import keep_plan, plan_digest
from agentc.run.record import Record
from agentc.run.refusals import describe_refusals
from agentc.run.report_page import report_to_show
from agentc.run.slurm_records import NOTHING, WaitingRecord, waiting_record
from agentc.run.snakemake_process import (
    DriverMissingError,
    DriverOptions,
    at_once,
    remove_leftovers,
    removed_scratch,
    require_driver,
)
from agentc.run.text_view import PlainView
from agentc.runtime.machine.process import StoppedError, stoppable
from agentc.runtime.servers.server_log import last_lines
from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.store.file_system import (
    explain,
    explain_start,
    failing,
    is_of_disk,
    writing,
)
from agentc.software.build import build_all
from agentc.software.requirements import Needed
from agentc.store.paths import RunFolder, variant_of
from agentc.store.run_history import plan_in_use
from agentc.text import counted, print_wrapped, table_width, wrapped_lines
from agentc.tracking.choice import ChosenTracker
from agentc.tracking.trackers import Followed, Trackers, trackers_beside


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run; `plain` asks for lines even on a terminal, `colour` is for the claims.
    `estimates` (by job id) are kept with the record of the run, `expected` is their sum in words,
    in lines. The present load of this machine makes CPU jobs take `slowdown` times as long.
    `trackers` are written to beside it. `results` are shown at the end, unless another step of the
    same run follows. `explain` knows why SLURM does not start the job that makes an object.
    """

    driver: DriverOptions
    plain: bool = False
    colour: bool = False
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    expected: Sequence[str] = ()
    slowdown: float = 1.0
    spec_directory: Path | None = None
    trackers: Sequence[ChosenTracker] = ()
    results: bool = True
    explain: Callable[[Work, str], Sequence[str]] = lambda work, unit: ()


def run_plan(work: Work, directory: Path, options: RunOptions) -> int:
    """Make what is missing. `directory` holds the compiled plan. Returns the exit code."""
    began = time.time()
    folder = RunFolder.of_plan(work.layout, work.document)
    plan_text = (directory / "plan.json").read_text(encoding="utf-8")
    with ExitStack() as stack:
        with writing("the record of the run", folder.path):
            stack.enter_context(plan_in_use(folder, keep_plan(folder, plan_text)))
            # What was looked up before the run was registered may have been collected since.
            work = refresh_work(work)
            record = Record(folder, work, began)
            record.open(plan_text, directory, _spec_path(work, options.spec_directory))
            record.expect(options.estimates)
        followed = Followed(
            layout=work.layout,
            plan=folder.stored_plan(plan_digest(plan_text)),
            label=folder.label,
            project=str(work.document["name"]),
        )
        with trackers_beside(options.trackers, followed, print) as trackers:
            return _run(work, directory, options, record, trackers)


def _run(
    work: Work, directory: Path, options: RunOptions, record: Record, trackers: Trackers
) -> int:
    layout, name = work.layout, variant_of(work.document).label
    orphans = _adopt_leftovers(work, options)
    if not work.missing:
        print(f"{name}: nothing to do, {_there(work)}")
        code = _show_results(work, options)
        record.close(code, [])
        return code
    print(f"{name}: {counted(len(work.missing), 'job')} to run, {_there(work)}")
    for number, line in enumerate(options.expected):
        print_wrapped(f"  {line}" if number else f"estimate: {line}")
    records: list[WaitingRecord] = []
    observer = Observer(
        layout,
        work.missing,
        since=record.began,
        waiting=lambda: records[0].now if records else NOTHING,
    )
    servers = ServerWatch(layout, work.document, since=record.began)
    try:
        code = _make(work, directory, options, orphans, observer, servers, records, trackers)
    except OSError as error:
        explained = _explain_os_error(error, work, observer, directory)
        if explained is None:
            raise
        code = explained
    except StoppedError as stop:
        code = 128 + stop.number
        print(
            "interrupted; finished results are kept, run the same command to resume",
            file=sys.stderr,
        )
    except (SoftwareError, DriverMissingError) as error:
        code = EXIT_FAILED
        print(f"agentc: {error}", file=sys.stderr)
    else:
        if code:
            code = _show_failures(code, work, options, observer, servers, directory)
        else:
            expected = f"; estimate: {options.expected[0]}" if options.expected else ""
            print_wrapped(f"{name}: done in {time.time() - record.began:.0f} s{expected}")
            code = _show_results(work, options)
    failed = [] if code == EXIT_DONE else [job.id for job in observer.failures()]
    record.close(code, failed)
    return code


def _adopt_leftovers(work: Work, options: RunOptions) -> leftovers.Orphans:
    """End and remove what killed runs left behind; their jobs in a queue are adopted."""
    layout, name = work.layout, variant_of(work.document).label
    ended = end_leftover_processes(layout)
    if ended:
        print(f"ended {ended} processes that a killed run had left behind")
    sessions = [f"session/{session['key']}" for session in work.document.get("sessions") or []]
    remove_stale_folders(layout, [object_of(job) for job in work.needed], sessions)
    orphans = leftovers.adopt_orphans(
        leftovers.dead_runs(layout, name), work, takes_over=_queue_of(options.driver) == SLURM
    )
    for line in orphans.messages:
        print(line)
    return orphans


def _make(
    work: Work,
    directory: Path,
    options: RunOptions,
    orphans: leftovers.Orphans,
    observer: Observer,
    servers: ServerWatch,
    records: list[WaitingRecord],
    trackers: Trackers,
) -> int:
    """Register the run, build software stacks and drive Snakemake. The record of the jobs
    that wait in a queue is added to `records`. Returns the exit code."""
    layout, name = work.layout, variant_of(work.document).label
    require_driver()
    with (
        stoppable(),
        attended(layout, name, _queue_of(options.driver)) as run,
        _view(name, work, options) as view,
    ):
        killed = tuple(orphan.token for orphan in orphans.taken)
        driver = replace(options.driver, token=run.token, killed=killed)
        awaited = (orphan for orphan in orphans.awaited if orphan.is_mine)
        with (
            removed_scratch(directory, run.token, *killed),
            waiting_record(layout, name, run.token) as waiting,
            _clear_queue((run, *awaited, *orphans.taken), view, orphans.taken),
        ):
            records.append(waiting)
            queue = QueueWords(waiting, partial(options.explain, work))
            leftovers.wait_for(orphans.awaited, lambda: view.show(observer.observe()))
            _build_software(work, directory, view, options.spec_directory)
            # Each of two runs that begin at once sees the other: both have their record.
            others = {
                other.token
                for other in active_runs(layout, name)
                if other.token not in driver.tokens
            }
            log = directory / (OWN_LOG.format(token=run.token) if others else DRIVER_LOG)
            observer.driver_log = log
            remove_leftovers(directory, others | set(killed))
            return drive(
                work, directory, driver, observer, servers, view, log, trackers.news, queue
            )


def _explain_os_error(
    error: OSError, work: Work, observer: Observer, directory: Path
) -> int | None:
    """Say why an interpreter cannot be started, or what the store's disk did; None for any other
    error."""
    layout = work.layout
    unusable = explain_start(error)
    if unusable is None and not is_of_disk(error):
        return None
    print(f"agentc: {unusable or explain(error, 'results', layout.root)}", file=sys.stderr)
    # Where the log lies on the same disk, nothing is known but of jobs seen to fail before.
    log = observer.driver_log or directory / DRIVER_LOG
    if observer.failures() or last_lines(log, 1):
        with suppress(OSError):
            text = outcome.describe_failures(layout, work.missing, observer.failures(), log)
            print(f"\n{text}", file=sys.stderr)
    return EXIT_STORE if unusable is None else EXIT_FAILED


def _show_failures(
    code: int,
    work: Work,
    options: RunOptions,
    observer: Observer,
    servers: ServerWatch,
    directory: Path,
) -> int:
    """Print why the run failed; the exit code is that of a store that fails, where it does."""
    layout, log = work.layout, observer.driver_log or directory / DRIVER_LOG
    jobs = observer.observe()
    if not any(job.state in ("failed", "killed") for job in jobs):
        # Another run has taken over meanwhile what failed here.
        jobs = (*jobs, *observer.failures())
    trouble = failing(layout.root)
    causes = [*([trouble] if trouble else []), *servers.failures()]
    causes += slurm_endings.describe(log, work)
    causes += describe_refusals(log, work, options.driver.profile)
    text = outcome.describe_failures(layout, work.missing, jobs, log, causes)
    print(f"\n{text}", file=sys.stderr)
    return EXIT_STORE if trouble else code


@contextmanager
def _clear_queue(
    runs: Sequence[ActiveRun], view: RunView, taken: Sequence[ActiveRun]
) -> Iterator[None]:
    """After this block no job of these runs is in a queue, however it ends, and those that were
    taken over are forgotten."""
    try:
        yield
    except BaseException:
        with ignore_signals():
            _clear(runs, view, taken, patient=True)
        raise
    _clear(runs, view, taken, patient=False)


def _clear(
    runs: Sequence[ActiveRun], view: RunView, taken: Sequence[ActiveRun], *, patient: bool
) -> None:
    trouble = leftovers.clear_queue(runs, patient=patient)
    if trouble:
        view.print_line(trouble)
        return
    for run in taken:
        run.forget()


def _queue_of(options: DriverOptions) -> str | None:
    profile = options.profile
    return profile.executor if profile is not None and profile.queued else None


def _build_software(
    work: Work, directory: Path, view: RunView, spec_directory: Path | None
) -> None:
    """Build the software stacks that are not there yet, before jobs would wait for them."""
    needed = []
    for name in work.software():
        lock = (directory / work.document["software"][name]["file"]).read_bytes()
        needed.append(Needed(name=name, lock=lock.decode("utf-8")))
    missing = [stack for stack in needed if not stack.ready(work.layout)]
    if not missing:
        return
    names = ", ".join(stack.name for stack in missing)
    view.print_line(f"building {counted(len(missing), 'software stack')}: {names} (once for all)")
    lines: SimpleQueue[tuple[Needed, str]] = SimpleQueue()
    with ThreadPoolExecutor(max_workers=1) as builder:
        # The builders are waited for here, where signals arrive.
        stop = threading.Event()
        built = builder.submit(
            build_all,
            missing,
            work.layout,
            lambda stack, line: lines.put((stack, line)),
            stop=stop,
            spec_directory=spec_directory,
            withheld=_secret_names(work),
        )
        try:
            while not (built.done() and lines.empty()):
                with suppress(Empty):
                    stack, line = lines.get(timeout=POLL_S)
                    passing = not line.startswith("software ready")
                    view.print_line(f"software stack {stack.name}: {line}", passing=passing)
        except BaseException:
            stop.set()
            raise
        built.result()


def _secret_names(work: Work) -> set[str]:
    jobs = work.document["jobs"]
    asking = [spec for job in jobs for spec in (job, *job["leases"])]
    return {name for spec in asking for name in (spec.get("secrets") or {}).values()}


def _spec_path(work: Work, directory: Path | None) -> Path | None:
    name = (work.document.get("spec") or {}).get("file")
    return directory / str(name) if directory is not None and name else None


def _there(work: Work) -> str:
    return f"{counted(len(work.present), 'result')} in the store already"


def _show_results(work: Work, options: RunOptions) -> int:
    """Print what the run found; the exit code is that of a gate that it met."""
    if not options.results:
        return EXIT_DONE
    width = table_width(sys.stdout)
    tables = outcome.tables(work.document, work.layout, width)
    if tables:
        print(f"\n{tables}")
    verdicts = claims.find_verdicts(work.document, work.layout)
    if verdicts is not None:
        print(f"\n{claims.render_verdicts(verdicts, colour=options.colour, width=width)}")
    sick = outcome.health(work.document, work.layout, "see `agentc status`")
    if sick:
        texts = [f"health: {sick[0]}"] if len(sick) == 1 else ["health:", *(f"  {x}" for x in sick)]
        print("\n".join(["", *wrapped_lines(texts, width)]))
    page = outcome.report_path(work.document, work.layout)
    if page is not None:
        print(f"\nreport: {report_to_show(page, work)}")
    judged = any(job["produces"] == "Verdicts" for job in work.needed)
    shut = claims.shut_gates(verdicts) if verdicts is not None and judged else []
    if shut:
        print(claims.gate_message(shut), file=sys.stderr)
    return EXIT_CLAIM if shut else EXIT_DONE


@contextmanager
def _view(name: str, work: Work, options: RunOptions) -> Iterator[RunView]:
    if options.plain or not sys.stdout.isatty():
        with PlainView(sys.stdout) as plain:
            yield plain
        return
    from agentc.run.job_logs import job_log
    from agentc.run.live_view import CoresInUse, LiveView, TimeLeft

    driver = options.driver
    cores = max(at_once(driver.profile, driver.jobs) or os.cpu_count() or 1, driver.cores)
    queued = _queue_of(driver) is not None
    left = TimeLeft(
        work.document, options.estimates, cores, queued=queued, slowdown=options.slowdown
    )
    in_use = None if queued else CoresInUse(work.document, cores)
    jobs = {str(job["id"]): job for job in work.document["jobs"]}
    with LiveView(
        name, left=left, cores=in_use, log=lambda job: job_log(work.layout, jobs[job])
    ) as live:
        yield live
