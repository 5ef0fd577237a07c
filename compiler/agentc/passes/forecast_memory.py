"""forecast_memory: note what each job that holds a model is expected to need, and how large a model
is that lies in a folder.

Requires: a plan, with shared servers in it.
Ensures: a job that trains or serves a model of a known shape, by a backend that says what it keeps,
has `memory`, and so has a shared server; on GPUs it has at least the cores that it keeps busy,
unless the spec says how many. A job that takes a model from a folder has its `model_size`. No key
depends on either.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TypeVar

from agentc.kinds.table import TRAINERS
from agentc.lease_roles import is_model_server
from agentc.memory import MemoryNeed
from agentc.passes.checks.model_holders import CARD, ModelHolder, holders_of
from agentc.passes.checks.model_servers import POLICY
from agentc.passes.checks.subject import subjects_of
from agentc.passes.lowering.leases import is_local_model_server, taker_of
from agentc.passes.unit import PassContext, Unit
from agentc.plan.job import Job, JobMemory, ModelSize, Server
from agentc.runtime.model_folder.config import of_text
from agentc.runtime.model_folder.folder import ModelFolder

_LARGEST = 10**9
Asking = TypeVar("Asking", Job, Server)


def forecast_memory(unit: Unit, context: PassContext) -> Unit:
    """Ask the backends, stage by stage."""
    plan, module = unit.plan, unit.module
    if plan is None or module is None:
        return unit
    stages: dict[tuple[str, str], JobMemory] = {}
    sizes: dict[str, ModelSize] = {}
    alike: dict[Hashable, JobMemory | None] = {}
    for subject in subjects_of(module, context.table, context.boundary):
        folder = subject.folders.get(subject.stage.id)
        if folder is not None and folder.content.parameters:
            sizes[subject.stage.id] = _size(folder.content)
        for role, holder in holders_of(subject).items():
            ground = holder.ground
            if ground not in alike:
                need = holder.need()
                alike[ground] = None if need is None else _memory(holder, need)
            memory = alike[ground]
            if memory is not None:
                stages[subject.stage.id, role] = memory
    if not stages and not sizes:
        return unit
    each: dict[Hashable, JobMemory] = {}
    jobs = tuple(
        replace(job, model_size=sizes[job.stage])
        if job.stage in sizes
        else _with_memory(job, stages, each)
        for job in plan.jobs
    )
    by_id = plan.by_id()
    servers = tuple(
        _equipped(replace(server, memory=stages.get((by_id[server.clients[0]].stage, role))))
        if is_model_server(role := server.lease.draft.role)
        else server
        for server in plan.servers
    )
    return replace(unit, plan=replace(plan, jobs=jobs, servers=servers))


def _size(folder: ModelFolder) -> ModelSize:
    def written(name: str) -> int:
        found = of_text(folder.config, name)
        return found if isinstance(found, int) and 0 < found < _LARGEST else 0

    return ModelSize(
        parameters=folder.parameters,
        file_bytes=folder.file_bytes,
        layers=written("num_hidden_layers"),
        hidden=written("hidden_size"),
    )


def _with_memory(
    job: Job, stages: Mapping[tuple[str, str], JobMemory], known: dict[Hashable, JobMemory]
) -> Job:
    """A job with what the models that it holds itself need together."""
    if job.draft.kind in TRAINERS:
        own = [POLICY]
    else:
        own = [lease.draft.role for lease in job.leases if is_local_model_server(lease.draft)]
    found = [stages[job.stage, role] for role in own if (job.stage, role) in stages]
    if not found:
        return job
    memory = found[0]
    if (job.stage, POLICY) in stages and POLICY in own:
        memory = _of_job(memory, job, known)
    for other in found[1:]:
        memory = _together(memory, other, known)
    return _equipped(replace(job, memory=memory))


def _together(memory: JobMemory, other: JobMemory, known: dict[Hashable, JobMemory]) -> JobMemory:
    """Two servers of one job, on GPUs of their own: what the fuller GPU holds, and the sum of the
    rest. The other's core is counted already, beside the job's program."""
    key = (memory, other)
    if key not in known:
        fuller = memory if memory.device >= other.device else other
        more = max(0, other.cores - 1)
        known[key] = replace(
            fuller,
            mem_mb=memory.mem_mb + other.mem_mb,
            staging=memory.staging + other.staging,
            cores=memory.cores + more if memory.cores else 0,
        )
    return known[key]


def _of_job(memory: JobMemory, job: Job, known: dict[Hashable, JobMemory]) -> JobMemory:
    """Each copy of a job's own server has its part of the host's memory, and its cores; the job's
    program and its other servers take one core each. `known` are those of the jobs before."""
    lease = job.lease(POLICY)
    if lease is None or lease.server:
        return memory
    others = sum(
        each.draft.devices * taker_of(each.draft).number_of_copies(0)
        for each in job.leases
        if each is not lease and is_local_model_server(each.draft)
    )
    copies = taker_of(lease.draft).number_of_copies(job.resources.gpus, others)
    beside = 1 + sum(
        each is not lease and each.draft.port not in ("none", "inside") and not each.server
        for each in job.leases
    )
    key = (memory, copies, beside)
    if key not in known:
        cores = memory.cores * copies + beside if memory.cores else 0
        known[key] = replace(memory, mem_mb=memory.mem_mb * copies, cores=cores)
    return known[key]


def _equipped(asking: Asking) -> Asking:
    """With the cores that it keeps busy, where nobody says how many it gets."""
    memory, resources = asking.memory, asking.resources
    if memory is None or "cpus" in asking.asked or memory.cores <= resources.cpus:
        return asking
    return replace(asking, resources=replace(resources, cpus=memory.cores))


def _memory(holder: ModelHolder, need: MemoryNeed) -> JobMemory:
    card, said = holder.card, holder.get(CARD)
    parts: Mapping[str, int] = {part.name: round(part.size) for part in need.parts}
    return JobMemory(
        gpus=holder.gpus,
        device=round(need.device),
        parts=parts,
        mem_mb=need.host_mib,
        staging=round(need.staging),
        card="" if card is None else str(said),
        room=0 if card is None else round(card * need.share),
        cores=need.cores,
    )
