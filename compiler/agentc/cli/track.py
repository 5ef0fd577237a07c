"""`agentc track [NAME|SPEC] --to trackio`: a run, at work or long over, written to trackers."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import names_spec, show_diagnostics
from agentc.cli.choose_run import add_run_choice, choose_run
from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_FAILED, EXIT_SPEC, EXIT_USAGE

if TYPE_CHECKING:
    from agentc.ir.module import Tracking
    from agentc.runtime.store.layout import StoreLayout

HELP = "write the curves and results of a run to trackers, while it runs or later"

_EPILOG = """\
Only what the store's files say is written, and what a tracker has is not written twice. A run that
is running, here or on a cluster's nodes, is followed to its end; Ctrl-C stops following.
With a SPEC, the settings of its `track:` hold, and its trackers are taken where --to is not given.
"""

_POLL_S = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_run_choice(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--to",
        metavar="NAME[,NAME]",
        help="trackers: trackio, tensorboard, wandb, mlflow (default: those of SPEC)",
    )
    parser.add_argument(
        "--once", action="store_true", help="write what there is, and do not follow a running run"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 done; 1 the spec has errors, or names an unknown tracker; 2 no tracker is named; 3 a
    tracker failed; 5 no such run."""
    from agentc.diagnostics import Sink
    from agentc.store.paths import readable_store
    from agentc.tracking.choice import choose_trackers, report_missing_secrets
    from agentc.tracking.trackers import Followed, Trackers

    layout = readable_store(arguments.store)
    run = choose_run(layout, arguments.name, arguments)
    sink = Sink()
    # Without a spec there are no settings, and so no folders.
    directory = Path(arguments.name or "").parent
    chosen = choose_trackers(_written(arguments), arguments.to, sink, directory)
    report_missing_secrets(chosen, os.environ, sink)
    if sink.has_errors:
        show_diagnostics(sink.sorted())
        return EXIT_SPEC
    if not chosen:
        print("agentc: say where to: `--to trackio`, or `track: trackio` in the spec that is given",
              file=sys.stderr)  # fmt: skip
        return EXIT_USAGE
    followed = Followed(
        layout=layout, plan=run.folder.last_plan, label=run.label, project=run.variant.name
    )
    trackers = Trackers(chosen, followed, patience=None)
    try:
        while (
            not arguments.once
            and _at_work(layout, run.label)
            and len(trackers.failed) < len(chosen)
        ):
            for line in trackers.news():
                print(line, flush=True)
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        print("no longer followed; what was written stays", file=sys.stderr)
    for line in trackers.finish():
        print(line, flush=True)
    return EXIT_FAILED if trackers.failed else 0


def _written(arguments: argparse.Namespace) -> tuple[Tracking, ...]:
    """What the spec says of trackers, where one is given."""
    if arguments.name is None or not names_spec(arguments.name):
        return ()
    from agentc.backend_api import load_backends
    from agentc.cli.arguments import compile_typed

    module = compile_typed(arguments, load_backends()).module
    return () if module is None else module.track


def _at_work(layout: StoreLayout, label: str) -> bool:
    from agentc.run.active_runs import active_runs

    return any(run.is_alive() for run in active_runs(layout, label))
