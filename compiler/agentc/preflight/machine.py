"""Where jobs run on this machine: its GPUs, what jobs inherit, and whether it can box code and
render pages that models write. `cluster` is the same for SLURM."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.placement import ResolvedRequest
from agentc.placement.device_count import DeviceShortfall, devices_lacking, devices_too_few
from agentc.plan.work import Work
from agentc.preflight.finding import PreflightFinding, named
from agentc.runtime.browser.process import NoBrowserError
from agentc.runtime.browser.render import Renderer
from agentc.runtime.machine.allocation import memory_limit
from agentc.runtime.machine.hardware import (
    GPUS_VARIABLE,
    DevicesError,
    gpus_hidden,
    machine_devices,
)
from agentc.runtime.sandbox.boxes import KINDS
from agentc.runtime.sandbox.probe import BoxProbe, probe_kind, refusal
from agentc.runtime.software.variables import JobVariablesError, site_variables
from agentc.text import counted


def check_machine(settled: Sequence[ResolvedRequest]) -> Iterator[PreflightFinding]:
    """GPUs and memory of this machine against the largest request, as each job's prologue does."""
    yield from _gpus(settled)
    wanted = max((each.number("mem_mb") or 0 for each in settled), default=0)
    limit = memory_limit(os.environ)
    if wanted and limit is not None:
        enough = wanted * 0.95 <= limit[0]
        yield PreflightFinding(
            check="memory",
            verdict="ok" if enough else "problem",
            message=f"{int(limit[0])} MiB here ({limit[1]}), {wanted} asked for",
            fix=None if enough else "lower placement.mem_mb, or run it where there is as much",
        )


def check_job_variables(environ: Mapping[str, str]) -> Iterator[PreflightFinding]:
    """What AGENTC_JOB_VARIABLES names can be handed to jobs; the site's variables are named."""
    try:
        given = site_variables(environ)
    except JobVariablesError as error:
        yield PreflightFinding(check="variables", verdict="problem", message=str(error))
        return
    if given:
        text = f"jobs get {named(given, 8)} of this shell"
        yield PreflightFinding(check="variables", verdict="ok", message=text)


def check_job_servers(settled: Sequence[ResolvedRequest]) -> Iterator[PreflightFinding]:
    """No two servers of a job share a GPU, here or in a queue."""
    for short in devices_too_few(settled):
        yield _of_shortfall(short)


def _gpus(settled: Sequence[ResolvedRequest]) -> Iterator[PreflightFinding]:
    most = max((each.number("gpus") or 0 for each in settled), default=0)
    if not most:
        return
    try:
        there = machine_devices(os.environ)
    except DevicesError as error:
        yield PreflightFinding(check="gpus", verdict="problem", message=str(error))
        return
    short = list(devices_lacking(settled, there))
    for each in short:
        yield _of_shortfall(each)
    if there and not short:
        names = ", ".join(device.name for device in there)
        text = f"{len(there)} GPUs here ({names}), {most} asked for at most by one job"
        yield PreflightFinding(check="gpus", verdict="ok", message=text)
    elif not there:
        stages = dict.fromkeys(
            str(job["stage"])
            for each in settled
            if each.number("gpus") == most
            for job in each.jobs
        )
        hidden = gpus_hidden(os.environ)
        asked = f"{counted(most, 'GPU', 'GPUs')} requested"
        yield PreflightFinding(
            check="gpus",
            verdict="warning" if hidden else "problem",
            message=f"{asked}, and {hidden} hides those of this machine: the work runs on the CPU"
            if hidden
            else f"{asked}, none found on this machine: the work would run on the CPU",
            about=tuple(stages),
            fix="run it where there are GPUs (`--profile` submits to a cluster). To run on the "
            f"CPU, write `placement: {{gpus: 0}}`, which changes no key, or set {GPUS_VARIABLE}=0",
        )


def _of_shortfall(short: DeviceShortfall) -> PreflightFinding:
    return PreflightFinding(
        check="gpus", verdict="problem", message=short.message, about=short.stages, fix=short.fix
    )


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
            message="whether the nodes can box code that models write is known only there",
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
            message="whether the nodes can render pages that models write is known only there",
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
