"""Whether the software of jobs can use the GPUs of the machine where they run: its CUDA against the
driver, builds for CPUs, and the C compiler that some packages need while they run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.placement import ResolvedRequest
from agentc.plan.job import EnvLock
from agentc.preflight.finding import PreflightFinding
from agentc.runtime.machine.hardware import gpus_hidden
from agentc.runtime.servers.job_leases import planned_leases, program_of
from agentc.runtime.software.environment import read_complete
from agentc.runtime.software.host_requirements import (
    compiler_fault,
    compiles,
    cpu_build,
    driver_fault,
    driver_version,
    environment_cuda,
)
from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter
from agentc.runtime.software.lock_text import LockTextError, read_lock_text
from agentc.runtime.store.layout import StoreLayout


@dataclass(frozen=True, slots=True)
class _Use:
    """A software environment in use, on GPUs or not; `program` are the words of a server."""

    environment: str
    gpus: bool
    program: tuple[str, ...] = ()


def check_gpu_software(
    settled: Sequence[ResolvedRequest],
    locks: Mapping[str, EnvLock],
    layout: StoreLayout,
    *,
    here: bool,
) -> Iterator[PreflightFinding]:
    """Faults of software environments that jobs of a plan use. `here`: jobs run on this machine,
    so its driver and compiler count; else each job looks on its node."""
    users: dict[_Use, list[str]] = {}
    for each in settled:
        for job in each.jobs:
            for use in _uses(job, each.number("gpus") or 0):
                if use.environment in locks:
                    users.setdefault(use, []).append(str(job["stage"]))
    driver = driver_version() if here and any(use.gpus for use in users) else None
    told: set[str] = set()
    for use, stages in users.items():
        for check, fault in _faults(use, locks[use.environment], layout, driver, here=here):
            message = f"`{use.environment}`: {fault}"
            if message not in told:
                told.add(message)
                yield PreflightFinding(
                    check=check,
                    verdict="problem",
                    message=message,
                    about=tuple(dict.fromkeys(stages)),
                )


def _uses(job: Mapping[str, Any], gpus: int) -> Iterator[_Use]:
    """The environments of a job's program and of its own servers."""
    gpus = 0 if gpus_hidden(os.environ) else gpus
    leases: list[Mapping[str, Any]] = [job["lease"]] if job["kind"] == "server" else []
    if not leases:
        leases = [one.spec for one in planned_leases(job) if one.starts_server]
        taken = sum(int(one.get("devices") or 0) for one in leases)
        yield _Use(str(job["environment"]), gpus > taken)
    for lease in leases:
        name, devices = lease.get("environment"), int(lease.get("devices") or 0)
        if name:
            yield _Use(str(name), bool(gpus and devices), tuple(program_of(lease)))


def _faults(
    use: _Use, lock: EnvLock, layout: StoreLayout, driver: str | None, *, here: bool
) -> Iterator[tuple[str, str]]:
    record = read_complete(layout.environment(lock.sha256)) or {}
    versions: Mapping[str, str] = record.get("versions") or {}
    if use.gpus:
        cpu = cpu_build(versions)
        if cpu is not None:
            yield "gpus", f"{cpu}; its jobs request GPUs"
        fault = driver_fault(environment_cuda(lock.lock, versions), driver, os.environ)
        if fault is not None:
            yield "gpus", fault
    package = compiles(lock.lock, use.gpus, use.program)
    if here and package is not None and not record.get("container"):
        interpreter = record.get("interpreter") or _interpreter(lock)
        missing = compiler_fault(package, use.gpus, interpreter, os.environ)
        if missing is not None:
            yield "compiler", missing


def _interpreter(lock: EnvLock) -> str | None:
    try:
        text = read_lock_text(lock.lock)
        return None if text.container else find_interpreter(text.python).path
    except (InterpreterMissingError, LockTextError):
        return None
