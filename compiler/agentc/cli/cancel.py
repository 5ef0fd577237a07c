"""`agentc cancel [NAME]`: stop a run that another shell started, on this machine or in a queue."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from agentc.cli.store_argument import add_store_argument
from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_USAGE

if TYPE_CHECKING:
    from agentc.run.active import ActiveRun
    from agentc.runtime.store.layout import StoreLayout

HELP = "stop a run that another shell started: its jobs, processes and queued jobs"

_EPILOG = """\
The run stops as it does after Ctrl-C: finished work is kept, and `agentc run` goes on later.
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
        help="the experiment, or one run of it as `agentc runs` writes it (default: the one at"
        " work)",
    )
    add_store_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 when nothing of it is left, 2 when several experiments are at work and none is named,
    3 when something does not end or is another user's, 5 when no run is at work."""
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.run.active import active_runs
    from agentc.run.inherit import refusal
    from agentc.store.paths import readable_store

    layout = readable_store(arguments.store)
    every = active_runs(layout)
    runs = [run for run in every if run.may_be_ended]
    others = [run for run in every if not run.may_be_ended and _is_meant(run, arguments.name)]
    if others and not any(_is_meant(run, arguments.name) for run in runs):
        for run in others:
            print(f"agentc: {refusal(run)}", file=sys.stderr)
        return EXIT_FAILED
    names = sorted({run.name for run in runs})
    if not names:
        print(f"agentc: no run is at work with the store {layout.root}", file=sys.stderr)
        return EXIT_NOT_FOUND
    name = arguments.name or names[0]
    if name not in names:
        # A name stands for its scales and params where they leave no choice.
        ours = [label for label in names if label.partition("@")[0] == name]
        if len(ours) > 1:
            print(f"agentc: at work are {', '.join(ours)}; name one", file=sys.stderr)
            return EXIT_USAGE
        name = ours[0] if ours else name
    if name not in names:
        hint = did_you_mean(name, names) or f"at work: {', '.join(names)}"
        print(f"agentc: no run of `{name}` is at work; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    if arguments.name is None and len(names) > 1:
        print(f"agentc: at work are {', '.join(names)}; name one", file=sys.stderr)
        return EXIT_USAGE
    troubles = [_end(run, layout) for run in runs if run.name == name]
    for trouble in filter(None, troubles):
        print(f"agentc: {trouble}", file=sys.stderr)
    return EXIT_FAILED if any(troubles) else 0


def _is_meant(run: ActiveRun, name: str | None) -> bool:
    """Whether a name stands for the run: its label, or the experiment; none for every run."""
    return name is None or name in (run.name, run.name.partition("@")[0])


def _end(run: ActiveRun, layout: StoreLayout) -> str:
    """Stop one run; returns what is amiss, or ""."""
    from agentc.run.inherit import clear_queue
    from agentc.run.leftovers import end_leftover_processes

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
        print(f"{run.name}: stopped; finished work is kept, run it again to go on")
    return trouble
