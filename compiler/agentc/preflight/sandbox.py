"""Whether this machine can box code that models write; for plans that run such code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.plan.work import Work
from agentc.preflight.finding import PreflightFinding
from agentc.runtime.sandbox.boxes import KINDS
from agentc.runtime.sandbox.probe import BoxProbe, probe_kind, refusal


def check_boxes(work: Work, table: BackendTable, elsewhere: bool) -> Iterator[PreflightFinding]:
    """Each kind of box that jobs which are left to run ask for."""
    wanted: dict[str, list[str]] = {}
    for job in work.missing:
        for lease in job["leases"]:
            backend = table.backends.get(str(lease["backend"]))
            if isinstance(backend, EnvironmentBackend) and backend.sandbox_setting is not None:
                kind = str((lease.get("settings") or {}).get(backend.sandbox_setting) or "auto")
                wanted.setdefault(kind, []).append(str(job["stage"]))
    for kind, stages in wanted.items():
        found = check_sandbox(kind, elsewhere)
        yield found if found.verdict == "ok" else replace(found, about=tuple(dict.fromkeys(stages)))


def check_sandbox(wanted: str = "auto", elsewhere: bool = False) -> PreflightFinding:
    """`wanted` as in `choose_box`; `elsewhere` where jobs run on other machines than this one,
    whose box says nothing of theirs."""
    if elsewhere:
        return PreflightFinding(
            check="sandbox",
            verdict="unknown",
            message="whether the nodes can box code that models write is known there alone",
            fix="bubblewrap on every node, or a kernel with Landlock",
        )
    tried: list[BoxProbe] = []
    for kind in KINDS if wanted == "auto" else (wanted,):
        tried.append(probe_kind(kind))
        found = tried[-1].box
        if found is not None:
            return PreflightFinding(
                check="sandbox",
                verdict="ok",
                message=f"{found.kind} {found.version}, {found.interpreter.program}",
            )
    return PreflightFinding(
        check="sandbox",
        verdict="problem",
        message=refusal(tried),
        fix=tried[0].remedy,
    )
