"""`agentc cancel [NAME]`: stop a run that another shell started, on this machine or in a queue."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_USAGE, CommandError

if TYPE_CHECKING:
    from agentc.run.active_runs import ActiveRun
    from agentc.runtime.store.layout import StoreLayout

HELP = "stop a run that another shell started: its jobs, processes and queued jobs"

_EPILOG = """\
The run stops as it does after Ctrl-C: finished work is kept, and `agentc run` continues later.
Of a run that was killed, the jobs that it left in a queue and its processes here are ended.
"""
_PATIENCE_S = 120.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="the experiment, or one run of it as `agentc status --all-runs` writes it (default:"
        " the active one)",
    )
    add_store_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 when nothing of it is left, 2 when several experiments are running and none is named,
    3 when something does not end or is another user's, 5 when no run is active."""
    from agentc.run.active_runs import active_runs
    from agentc.run.leftovers import refusal
    from agentc.store.paths import readable_store

    layout = readable_store(arguments.store)
    active = active_runs(layout)
    runs = [run for run in active if run.may_be_ended]
    others = [run for run in active if not run.may_be_ended and _is_meant(run, arguments.name)]
    if others and not any(_is_meant(run, arguments.name) for run in runs):
        for run in others:
            print(f"agentc: {refusal(run)}", file=sys.stderr)
        return EXIT_FAILED
    names = sorted({run.name for run in runs})
    if not names:
        print(f"agentc: no run is active with the store {layout.root}", file=sys.stderr)
        return EXIT_NOT_FOUND
    name = _active_name(arguments.name or None, names)
    troubles = [_end(run, layout) for run in runs if run.name == name]
    for trouble in filter(None, troubles):
        print(f"agentc: {trouble}", file=sys.stderr)
    return EXIT_FAILED if any(troubles) else 0


class _NoActiveRunError(CommandError):
    """A name means no active run, or leaves a choice."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


def _active_name(typed: str | None, names: Sequence[str]) -> str:
    """The label of the active run that is meant. A name without scale and params means the only
    active run of that experiment. Raises _NoActiveRunError."""
    from agentc.diagnostics.suggest import did_you_mean

    if typed in names:
        return str(typed)
    # Without a name the only active run is meant.
    meant = [label for label in names if typed in (None, label.partition("@")[0])]
    if len(meant) > 1:
        raise _NoActiveRunError(f"active runs: {', '.join(meant)}; name one", EXIT_USAGE)
    if not meant:
        hint = did_you_mean(str(typed), names) or f"active runs: {', '.join(names)}"
        raise _NoActiveRunError(f"no run of `{typed}` is active; {hint}", EXIT_NOT_FOUND)
    return meant[0]


def _is_meant(run: ActiveRun, name: str | None) -> bool:
    """Whether a name denotes the run: its label, or the experiment; none for every run."""
    return name is None or name in (run.name, run.name.partition("@")[0])


def _end(run: ActiveRun, layout: StoreLayout) -> str:
    """Stop one run; returns what is amiss, or ""."""
    from agentc.run.leftovers import clear_queue, end_leftover_processes

    where = f"process {run.pid} on {run.host}"
    if run.is_alive():
        print(f"{run.name}: stopping ({where})", flush=True)
        run.ask_to_stop()
        deadline = time.monotonic() + _PATIENCE_S
        while run.is_alive():
            if time.monotonic() > deadline:
                return f"{run.name} ({where}) has not stopped after {_PATIENCE_S:.0f} s"
            time.sleep(0.2)
    else:
        print(f"{run.name}: its run ({where}) was killed; ending what it left", flush=True)
    trouble = clear_queue([run])
    ended = end_leftover_processes(layout)
    if ended:
        print(f"ended {ended} processes that were left behind")
    if not trouble:
        run.forget()
        print(f"{run.name}: stopped; finished work is kept, run it again to continue")
    return trouble
