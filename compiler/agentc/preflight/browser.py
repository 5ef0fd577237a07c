"""Whether this machine can render pages that models write; for plans that do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.plan.work import Work
from agentc.preflight.finding import PreflightFinding
from agentc.runtime.browser.process import NoBrowserError
from agentc.runtime.browser.render import Renderer


def check_browsers(work: Work, table: BackendTable, elsewhere: bool) -> Iterator[PreflightFinding]:
    """Starts the boxed browser once, if a job that is left to run needs one."""
    stages: list[str] = []
    for job in work.missing:
        for lease in job["leases"]:
            backend = table.backends.get(str(lease["backend"]))
            if isinstance(backend, EnvironmentBackend) and backend.browser:
                stages.append(str(job["stage"]))
    if stages:
        yield check_browser(tuple(dict.fromkeys(stages)), elsewhere)


def check_browser(stages: Sequence[str] = (), elsewhere: bool = False) -> PreflightFinding:
    """`elsewhere` where jobs run on other machines than this one."""
    if elsewhere:
        return PreflightFinding(
            check="browser",
            verdict="unknown",
            message="whether the nodes can render pages that models write is known there alone",
            fix="bubblewrap, Chromium and fonts on every node",
            about=tuple(stages),
        )
    renderer = Renderer()
    try:
        facts = renderer.facts()
    except NoBrowserError as error:
        reason, _, remedy = str(error).rpartition("; ")
        return PreflightFinding(
            check="browser", verdict="problem", message=reason, fix=remedy, about=tuple(stages)
        )
    finally:
        renderer.close()
    found = f"{facts['browser']} in {facts['kind']} {facts['version']}"
    return PreflightFinding(check="browser", verdict="ok", message=found)
