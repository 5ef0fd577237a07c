"""What a job asks of the machine: cpus, gpus, memory and minutes, from `placement:` or defaults."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import JobDraft
from agentc.ir.module import Stage
from agentc.kinds.field import Json
from agentc.plan.job import Resources

RESOURCE_NAMES = ("cpus", "gpus", "mem_mb", "minutes")
COMPUTE_CPUS = 2
"""Default cpus of a job that trains or serves a model. A fixed number, since the number of threads
changes the last digits of what is computed."""

_TRAINS = ("sft", "dpo", "model")


def job_resources(stage: Stage, draft: JobDraft, drafts: tuple[JobDraft, ...]) -> Resources:
    """The resources of one of the `drafts` of a stage. What `placement:` asks for is meant for
    the work on models; where a stage has such a job, its other jobs get the defaults."""
    heavy = _is_heavy(draft)
    meant = heavy or not any(_is_heavy(other) for other in drafts)
    asked = {name: _integer(stage, name) if meant else None for name in RESOURCE_NAMES}
    return Resources(
        cpus=asked["cpus"] or max(COMPUTE_CPUS if heavy else 1, draft.processes),
        gpus=asked["gpus"] or 0,
        mem_mb=asked["mem_mb"],
        minutes=asked["minutes"],
    )


def _is_heavy(draft: JobDraft) -> bool:
    """Whether the job trains a model, or serves one on this machine."""
    serves = any(lease.role == "policy" and lease.port != "none" for lease in draft.leases)
    return serves or draft.kind in _TRAINS


def job_placement(stage: Stage, draft: JobDraft) -> Mapping[str, Json]:
    """What the program is told about its place: the backend's own words and the spec's."""
    given = {
        name: value.json
        for name, value in stage.placement.items()
        if name not in RESOURCE_NAMES and value.json is not None
    }
    return {**draft.placement, **given}


def _integer(stage: Stage, name: str) -> int | None:
    value = stage.placement.get(name)
    return value.json if value is not None and isinstance(value.json, int) else None
