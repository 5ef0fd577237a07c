"""`agentc logs STAGE [SPEC] [-f] [--server [NAME]]`: the log of a stage's job or of its servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentc.cli.arguments import names_spec
from agentc.cli.choose_run import add_variant_arguments, choose_run
from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_DONE, EXIT_NOT_FOUND, CommandError
from agentc.text import aligned

if TYPE_CHECKING:
    from agentc.plan.work import Document
    from agentc.run.job_logs import LogFile
    from agentc.run.observe import JobSnapshot
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.run_history import PastRun

HELP = "print the log of a stage's job, or of its servers; -f as it grows"

_EPILOG = """\
  agentc logs sft                 of the last run: its latest attempt
  agentc logs eto.2.dpo -f        as it grows, until the job ends
  agentc logs evaluate --server   the model server's, or a list of several

A name that means several jobs (rounds, configurations of a sweep) lists them; the only one of them
that runs, or else that failed, is printed.
"""


class NoLogError(CommandError):
    """There is nothing to print, for the reason that the message says."""

    exit_code = EXIT_NOT_FOUND


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a stage or job (`sft`, `eto.2.dpo`, `evaluate:rollout`), and the spec of the run "
        "(default: the run that was started last)",
    )
    parser.add_argument("--run", metavar="NAME", help="the run, as `agentc status` takes it")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="print what is added too, until the job ends"
    )
    parser.add_argument(
        "--server",
        nargs="?",
        const="",
        metavar="NAME",
        help="of the job's model and environment servers instead; NAME is one of several",
    )
    parser.add_argument(
        "--all-attempts", action="store_true", help="from the first attempt of the job on"
    )
    add_variant_arguments(parser)
    add_store_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0; 1 when the spec has errors; 2 for a wrong command line; 5 when there is no such run, job
    or log."""
    from agentc.plan.work import read_plan
    from agentc.store.paths import readable_store

    names = list(arguments.names)
    if arguments.server and (names_spec(arguments.server) or all(map(names_spec, names))):
        # `agentc logs --server sft`: what follows the option is the stage, or the spec.
        names, arguments.server = [*names, arguments.server], ""
    specs = [name for name in names if names_spec(name)]
    stages = [name for name in names if name not in specs]
    if len(stages) != 1 or len(specs) > 1 or (specs and arguments.run is not None):
        arguments.parser.error("name one stage or job, and at most one spec or --run")
    layout = readable_store(arguments.store)
    run = choose_run(layout, specs[0] if specs else arguments.run, arguments)
    document = read_plan(run.folder.last_plan)
    job = _chosen(stages[0], run, document, layout, served=arguments.server is not None)
    if job is None:
        return EXIT_DONE
    if arguments.server is not None:
        return _show_server(arguments, job, run, document, layout)
    from agentc.run.job_logs import job_log, program_logs

    log = job_log(layout, job)
    if not log.exists() and not arguments.follow:
        raise NoLogError(f"{job['id']} has no log: {_state(job, layout)}")
    _note(str(log))
    if not _print(program_logs(layout, job, whole=arguments.all_attempts), arguments, job, run):
        _note(f"the program of {job['id']} has printed nothing: {_state(job, layout)}")
    return EXIT_DONE


def _chosen(
    given: str, run: PastRun, document: Document, layout: StoreLayout, *, served: bool
) -> Mapping[str, Any] | None:
    """The job that a name means, with `served` one that uses servers; None where there are
    several, which are listed. Raises NoLogError where there is none."""
    from agentc.plan.stage_names import matching_names, nearest
    from agentc.run.job_logs import job_log, server_logs
    from agentc.run.observe import Observer

    jobs: list[Mapping[str, Any]] = [*document["jobs"]]
    ids = [name for job in jobs for name in (str(job["stage"]), str(job["id"]))]
    meant = {*matching_names(given, ids)}
    found = [job for job in jobs if {str(job["id"]), str(job["stage"])} & meant]
    if not found:
        raise NoLogError(f"{run.label} has no stage or job `{given}`; {nearest(given, ids)}")
    if served:
        found = [job for job in found if server_logs(layout, document, job)] or found
    exact = [job for job in found if job["id"] == given]
    if len(found) == 1 or exact:
        job = (exact or found)[0]
        others = [str(other["id"]) for other in found if other is not job]
        if others:
            _note(f"this is {given}; other jobs of the stage: {', '.join(others)}")
        return job
    snapshots = {each.id: each for each in Observer(layout, found, since=0.0).observe()}
    for states in (_is_active, _has_failed):
        only = [job for job in found if states(snapshots[str(job["id"])])]
        if len(only) == 1:
            _note(f"`{given}` is {len(found)} jobs; this is {only[0]['id']}")
            return only[0]
    from agentc.run.text_view import STATE_WORDS

    rows = [
        (str(job["id"]), STATE_WORDS[snapshots[str(job["id"])].state], str(job_log(layout, job)))
        for job in found
    ]
    print("\n".join(aligned(rows)))
    print(f"`agentc logs {found[0]['id']}` prints one of them")
    return None


def _is_active(seen: JobSnapshot) -> bool:
    return seen.active


def _has_failed(seen: JobSnapshot) -> bool:
    return seen.state in ("failed", "killed")


def _show_server(
    arguments: argparse.Namespace,
    job: Mapping[str, Any],
    run: PastRun,
    document: Document,
    layout: StoreLayout,
) -> int:
    """The only server's log or the one that is named; else a list of them."""
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.run.job_logs import LogFile, server_logs

    found = server_logs(layout, document, job)
    named = [each for each in found if arguments.server in ("", each.name)]
    if not found:
        raise NoLogError(f"{job['id']} has no log of a server: {_state(job, layout)}")
    if not named:
        names = list(dict.fromkeys(each.name for each in found))
        hint = did_you_mean(arguments.server, names) or f"there are {', '.join(names)}"
        raise NoLogError(f"{job['id']} has no server `{arguments.server}`; {hint}")
    if len(named) > 1:
        print("\n".join(aligned([(each.name, str(each.path)) for each in named])))
        print(f"`agentc logs {job['id']} --server {named[0].name}` prints one of them")
        return EXIT_DONE
    path = named[0].path
    _note(str(path))
    _print([LogFile(lambda: path)], arguments, job, run)
    return EXIT_DONE


def _print(
    logs: Sequence[LogFile],
    arguments: argparse.Namespace,
    job: Mapping[str, Any],
    run: PastRun,
) -> bool:
    """Print logs, with -f until the job has ended; whether there was anything. Raises
    NoLogError."""
    from agentc.plan.work import object_of
    from agentc.run.active_runs import active_runs
    from agentc.run.job_logs import growing_text
    from agentc.run.observe import Observer
    from agentc.store.paths import readable_store

    layout = readable_store(arguments.store)
    observer = Observer(layout, [job], since=0.0)

    def ended() -> bool:
        if not arguments.follow or layout.is_published(object_of(job)):
            return True
        (seen,) = observer.observe()
        return not seen.active and not any(
            each.is_alive() for each in active_runs(layout, run.label)
        )

    printed = False
    try:
        for text in growing_text(logs, ended):
            print(text, end="", flush=True)
            printed = True
    except OSError as error:
        raise NoLogError(f"the log of {job['id']} cannot be read: {error.strerror}") from None
    return printed


def _state(job: Mapping[str, Any], layout: StoreLayout) -> str:
    """How the job stands, in words."""
    from agentc.run.observe import Observer
    from agentc.run.text_view import sentence

    (seen,) = Observer(layout, [job], since=0.0).observe()
    return "it has not been started" if seen.state == "waiting" else sentence(seen)


def _note(text: str) -> None:
    print(f"agentc: {text}", file=sys.stderr, flush=True)
