"""`agentc plan --preflight SPEC`: what would end a run hours later, before anything is queued."""

from __future__ import annotations

import argparse
import json
import os
import time

from agentc.cli.spec_work import find_spec_work
from agentc.exit_codes import EXIT_PREFLIGHT


def show_preflight(arguments: argparse.Namespace) -> int:
    """The exit code: 0 no problem, 1 errors in the spec, 2 no such profile, 5 no such stage, 7
    something would fail."""
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
