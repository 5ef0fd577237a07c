"""Whether jobs fit the GPUs that an estimate is for: how many there are, and what each holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agentc.cost.place import Place
from agentc.memory.cards import card_label
from agentc.memory.need import gigabytes
from agentc.memory.render import memory_label, memory_share, on_card
from agentc.text import counted


def misfits(document: Mapping[str, Any], running: Collection[str], place: Place) -> tuple[str, ...]:
    """A line for what the GPUs are too small for, one for what they are too few for, and one for
    models that request none: `does not fit: 2 jobs (sft needs 43.3 GB of each GPU, a100-40gb has
    40.0)`. `running` are the objects to make. Nothing where no GPUs are named."""
    if place.model is None:
        return ()
    jobs = [job for job in document["jobs"] if f"{job['kind']}/{job['key']}" in running]
    jobs = list({f"{job['kind']}/{job['key']}": job for job in jobs}.values())
    servers = list(_shared_servers(document, jobs))
    holders = [*jobs, *servers]
    return (*_too_small(holders, place), *_too_few(jobs, servers, place), *_without(holders))


def _too_small(holders: list[Mapping[str, Any]], place: Place) -> Iterator[str]:
    placed = [on_card(each, place.model) for each in holders]
    large = [each for each in placed if (each.get("memory") or {}).get("gpus")]
    large = [each for each in large if memory_share(each) > 1.0]
    if large:
        worst = max(large, key=memory_share)
        memory = worst["memory"]
        yield (
            f"does not fit: {counted(len(large), 'job')} ({_name(worst)} needs "
            f"{gigabytes(memory['device'])} GB of each GPU, {card_label(memory['card'])} has "
            f"{gigabytes(memory['room'])})"
        )


def _too_few(
    jobs: list[Mapping[str, Any]], servers: list[Mapping[str, Any]], place: Place
) -> Iterator[str]:
    if place.gpus is None:
        return
    served = {str(each["id"]): _gpus(each) * int(each["replicas"]) for each in servers}
    needs = {
        str(job["id"]): _gpus(job) + sum(served.get(name, 0) for name in _servers_of(job))
        for job in jobs
    }
    many = [job for job in jobs if needs[str(job["id"])] > place.gpus]
    if many:
        worst = max(many, key=lambda job: needs[str(job["id"])])
        used = [name for name in _servers_of(worst) if served.get(name)]
        yield (
            f"does not fit: {counted(len(many), 'job')} ({_name(worst)}"
            f"{' with ' + ', '.join(used) if used else ''} needs "
            f"{counted(needs[str(worst['id'])], 'GPU', 'GPUs')}, {place.gpus} named)"
        )


def _without(holders: list[Mapping[str, Any]]) -> Iterator[str]:
    """Models that the CPU has to hold, though GPUs are named."""
    large = [each for each in holders if memory_label(each) and not each["memory"]["gpus"]]
    if large:
        worst = max(large, key=memory_share)
        yield (
            f"uses no GPU: {counted(len(large), 'job')} ({_name(worst)} needs "
            f"{memory_label(worst)} of main memory; `placement: {{gpus: 1}}` requests a GPU)"
        )


def _shared_servers(
    document: Mapping[str, Any], jobs: list[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Those that these jobs are clients of."""
    names = {name for job in jobs for name in _servers_of(job)}
    for server in document.get("servers") or ():
        if server["scope"] == "shared" and server["id"] in names:
            yield server


def _servers_of(job: Mapping[str, Any]) -> tuple[str, ...]:
    names = (str(lease["server"]) for lease in job.get("leases") or () if lease.get("server"))
    return tuple(dict.fromkeys(names))


def _gpus(holder: Mapping[str, Any]) -> int:
    return int((holder.get("resources") or {}).get("gpus") or 0)


def _name(holder: Mapping[str, Any]) -> str:
    return str(holder.get("stage") or holder["id"])
