"""GPUs of this machine against what jobs ask for: how many Snakemake may count, and what could
never run here. `agentc.runtime.unit_devices` gives each job its own; docs/design/devices.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.kinds.table import MODEL_MAKERS
from agentc.placement.precedence import ResolvedRequest
from agentc.runtime.machine.hardware import (
    Device,
    TooFewDevicesError,
    divide,
    machine_devices,
    may_have_gpus,
)
from agentc.runtime.servers.job_leases import job_device_takers, planned_leases
from agentc.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShortfall:
    """Something that could never run, in words, with what would mend it, and the stages."""

    message: str
    fix: str
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCount:
    """What the driver is told: GPUs that jobs may have at once (None: nobody counts), and cores
    that have to be there; and `note` for people."""

    gpus: int | None = None
    cores: int = 0
    note: str = ""


def count_devices(
    settled: Sequence[ResolvedRequest], environ: Mapping[str, str], *, queued: bool
) -> tuple[DeviceCount, tuple[DeviceShortfall, ...]]:
    """The GPUs for these jobs, and which of them could never run. Raises DevicesError."""
    few = tuple(devices_too_few(settled))
    if queued:
        return DeviceCount(), few
    if not any(map(_on_node, settled)):
        return DeviceCount(note=_unasked(settled, environ)), few
    there = machine_devices(environ)
    if not there:
        return DeviceCount(), few
    cores = cores_for_waiting(settled, len(there))
    return DeviceCount(gpus=len(there), cores=cores), (*few, *devices_lacking(settled, there))


def devices_lacking(
    settled: Sequence[ResolvedRequest], there: Sequence[Device]
) -> Iterator[DeviceShortfall]:
    """Jobs that want more than this machine has, by themselves or beside the shared servers that
    they use. Nothing where the machine shows no GPU: the processor does the work."""
    if not there:
        return
    has = f"this machine has {len(there)} ({', '.join(device.name for device in there)})"
    servers = {str(each.jobs[0]["id"]): each for each in settled if each.rule == "server"}
    for each in settled:
        own = _on_node(each)
        copies = int(each.jobs[0].get("replicas") or 1) if each.rule == "server" else 1
        used = [] if each.rule == "server" else _servers_of(each, servers)
        beside = sum(_on_node(one) * int(one.jobs[0]["replicas"]) for one in used)
        if own * copies + beside <= len(there) or not own + beside:
            continue
        asked = counted(own, "GPU", "GPUs") + (f" for each of {copies} copies" * (copies > 1))
        said = f"{each.label} requests {asked} ({each.placed['gpus'].source})"
        if beside:
            names = ", ".join(one.label for one in used)
            said += f" beside {names} with {beside}"
        yield DeviceShortfall(
            message=f"{said}, and {has}",
            fix="lower placement.gpus (it changes no key), or run it where there are as many",
            stages=_stages(each),
        )


def devices_too_few(settled: Sequence[ResolvedRequest]) -> Iterator[DeviceShortfall]:
    """Jobs whose own servers would have to share a GPU, wherever they run."""
    for each in settled:
        gpus = each.number("gpus")
        if not gpus or (each.number("nodes") or 1) > 1 or each.rule == "server":
            continue
        own = {name: taker for job in each.jobs for name, taker in job_device_takers(job).items()}
        try:
            divide([str(number) for number in range(gpus)], own)
        except TooFewDevicesError as error:
            yield DeviceShortfall(
                message=f"{each.label} requests {counted(gpus, 'GPU', 'GPUs')}"
                f" ({each.placed['gpus'].source}): {error}",
                fix="raise placement.gpus (it changes no key)",
                stages=_stages(each),
            )


def cores_for_waiting(settled: Sequence[ResolvedRequest], gpus: int) -> int:
    """Cores that must be there so that jobs which wait for a GPU of a shared server never keep the
    server's own clients from running; 0 where no shared server has GPUs."""
    servers = [each for each in settled if each.rule == "server" and _on_node(each)]
    if not servers:
        return 0
    names = {str(name) for each in servers for name in each.jobs[0]["clients"]}
    on_gpus = [each for each in settled if each.rule != "server" and _on_node(each)]
    waiting = gpus // min(map(_on_node, on_gpus)) if on_gpus else 0
    most = max((each.number("cpus") or 1 for each in on_gpus), default=0)
    clients = [each for each in settled if names & {str(job["id"]) for job in each.jobs}]
    return waiting * most + max((each.number("cpus") or 1 for each in clients), default=1)


def _unasked(settled: Sequence[ResolvedRequest], environ: Mapping[str, str]) -> str:
    """What to say where there are GPUs, and work for them, and nobody asks for one."""
    jobs = [job for each in settled for job in each.jobs]
    on_models = any(
        job["kind"] in MODEL_MAKERS or any(each.starts_server for each in planned_leases(job))
        for job in jobs
    )
    if not on_models or not may_have_gpus(environ):
        return ""
    there = len(machine_devices(environ))
    if not there:
        return ""
    return (
        f"this machine has {counted(there, 'GPU', 'GPUs')}, and no job requests one: all work on "
        "the CPU. `placement: {gpus: 1}` of a stage requests one (it changes no key)"
    )


def _on_node(each: ResolvedRequest) -> int:
    return -(-(each.number("gpus") or 0) // (each.number("nodes") or 1))


def _servers_of(
    each: ResolvedRequest, servers: Mapping[str, ResolvedRequest]
) -> list[ResolvedRequest]:
    leases: list[Mapping[str, Any]] = [spec for job in each.jobs for spec in job["leases"]]
    names = dict.fromkeys(str(spec.get("server") or "") for spec in leases)
    return [servers[name] for name in names if name in servers]


def _stages(each: ResolvedRequest) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(job["stage"]) for job in each.jobs))
