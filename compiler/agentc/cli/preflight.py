"""`agentc preflight SPEC`: what would end a run hours later, before anything is queued."""

from __future__ import annotations

import argparse
import json
import os
import time

from agentc.cli.arguments import (
    add_format_argument,
    add_locked_argument,
    add_spec_arguments,
)
from agentc.cli.parser import add_store_argument
from agentc.cli.spec_work import find_spec_work
from agentc.exit_codes import EXIT_PREFLIGHT

HELP = "look for what would fail: cluster limits, disk, software, tokens, before anything is queued"

_EPILOG = """\
Only what has to run is looked at. `--offline` asks nobody: neither SLURM nor the model hub.

exit codes: 0 no problem (there may be warnings), 1 the spec has errors, 2 no such profile,
5 no such stage, 7 something would fail
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_spec_arguments(parser)
    add_locked_argument(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="the Snakemake profile that the run will have (default: as for `agentc run`)",
    )
    parser.add_argument("--until", metavar="STAGE", help="only this stage and what it needs")
    parser.add_argument("--offline", action="store_true", help="ask neither SLURM nor the hub")
    add_format_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 no problem, 1 errors in the spec, 2 no such profile, 5 no such stage, 7 something would
    fail."""
    from agentc.backend_api import load_backends
    from agentc.cli.cost import cost_to_run, find_place
    from agentc.placement import read_requests
    from agentc.placement.profile import find_profile
    from agentc.preflight.every_check import every_check
    from agentc.preflight.finding import findings_document, findings_text
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.paths import store_root

    started = time.monotonic()
    profile = find_profile(arguments.profile, os.environ)
    requests = None if profile is None else read_requests(profile)
    table = load_backends()
    typed = find_spec_work(
        arguments,
        table,
        until=arguments.until,
        form=arguments.format,
        # A store that is in no state to be used is something to find here.
        open_layout=lambda store: StoreLayout(store_root(store)),
    )
    compiled, work = typed.compiled, typed.work
    cost = cost_to_run(work, compiled, table, find_place(None, profile, None))
    online = not arguments.offline
    found = every_check(work, compiled, table, requests, cost, online=online, reach=online)
    if arguments.format == "json":
        name = None if profile is None else profile.name
        print(json.dumps(findings_document(found, str(work.document["name"]), name), indent=2))
    else:
        taken = time.monotonic() - started
        print(findings_text(found, taken, asked=not arguments.offline), end="")
    return EXIT_PREFLIGHT if any(each.verdict == "problem" for each in found) else 0
