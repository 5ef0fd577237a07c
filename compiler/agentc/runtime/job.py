"""The wrapper around every job: `python -m agentc.runtime.job --plan P --store S --job ID`.

Snakemake's shell lines exec this. It locks the object, provides the software stack and the
servers, runs the program, checks what came out, and publishes it; see contracts.md, section 3.
With `--session ID` it does so for all members of a session on shared servers.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentc.program.child import die_with_parent
from agentc.runtime.machine.output_filters import guarded_output
from agentc.runtime.software import variables
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import PlanError, PlanFile

USAGE = (
    "usage: python -m agentc.runtime.job --plan PLAN --store STORE (--job | --session) ID"
    " [--asked RESOURCES] [--parent PID]"
)
_OPTIONS = ("--plan", "--store", "--job", "--session", "--asked", "--parent")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 published (by this wrapper or another), 1 failed, 2 wrong command line, 75 to
    be run again (out of time, or the claim was lost), 128+n ended by signal n."""
    variables.restore()
    with guarded_output():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    options = _parse(sys.argv[1:] if argv is None else argv)
    if options is None:
        print(USAGE, file=sys.stderr)
        return 2
    layout = StoreLayout(options["store"])
    session: dict[str, Any] | None = None
    try:
        plan = PlanFile(Path(options["plan"]).absolute())
        if "session" in options:
            session = plan.session(options["session"])
            jobs = plan.session_jobs(session)
        else:
            jobs = [plan.job(options["job"])]
    except PlanError as error:
        print(f"agentc: {error}", file=sys.stderr)
        return 1
    try:
        if all(map(layout.is_published, _objects(jobs, session))):
            return 0
    except OSError as error:
        print(f"agentc: the store cannot be read: {error}", file=sys.stderr)
        return 1
    return _work(layout, plan, jobs, session, options)


def _work(
    layout: StoreLayout,
    plan: PlanFile,
    jobs: list[dict[str, Any]],
    session: dict[str, Any] | None,
    options: dict[str, str],
) -> int:
    # Imported late: a wrapper that finds its object in the store is done in half the time.
    from agentc.runtime.machine.process import StoppedError
    from agentc.runtime.software.job_software import SoftwareError
    from agentc.runtime.store.layout import adopt_umask
    from agentc.runtime.store.object_lock import LostClaimError
    from agentc.runtime.wrapper import Wrapper

    # Snakemake tells its number: when it was killed while this Python started, whoever is the
    # parent by now is another one, and would be taken for the right one.
    die_with_parent(signal.SIGTERM, _number(options.get("parent")))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    adopt_umask(layout)
    try:
        return Wrapper(layout, plan, jobs, session, options.get("asked", "")).run()
    except (PlanError, SoftwareError, LostClaimError, OSError) as error:
        print(f"agentc: {error}", file=sys.stderr)
        return 1
    except StoppedError as error:
        print(f"agentc: {error}", file=sys.stderr)
        return 128 + error.number


def _objects(jobs: list[dict[str, Any]], session: dict[str, Any] | None) -> list[str]:
    found = [f"{job['kind']}/{job['key']}" for job in jobs]
    return found + (["session/" + session["key"]] if session else [])


def _parse(words: Sequence[str]) -> dict[str, str] | None:
    """Six options with a value each; argparse would cost every job 10 ms."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        name = rest.pop(0)
        if name not in _OPTIONS or not rest:
            return None
        found[name[2:]] = rest.pop(0)
    complete = {"plan", "store"} <= set(found) and ("job" in found) != ("session" in found)
    return found if complete and found.get("parent", "1").isdigit() else None


def _number(text: str | None) -> int | None:
    return int(text) if text else None


if __name__ == "__main__":
    sys.exit(main())
