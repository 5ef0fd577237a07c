"""What a job asks of the machine: cpus, gpus, memory and minutes, from `placement:` or defaults.

What a profile makes of it is `agentc.placement`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from agentc.backend_api import JobDraft
from agentc.ir.module import Stage, stage_span
from agentc.kinds.field import Json
from agentc.kinds.table import MODEL_MAKERS
from agentc.lease_roles import is_model_server
from agentc.passes.lowering.leases import holds_model
from agentc.plan.job import COMPUTE_CPUS, ResourceRequest, Resources

RESOURCE_NAMES = ("cpus", "gpus", "mem_mb", "minutes")
RETRIES, CARD, LOCAL = "retries", "gpu", "local"
EVERY_JOB_NAMES = ("partition", "account", "qos", RETRIES, LOCAL)
"""Where jobs run, who pays, and how often they are submitted again; the rest of `placement:` says
how much of what they get."""


def job_resources(stage: Stage, draft: JobDraft, drafts: tuple[JobDraft, ...]) -> Resources:
    """The resources of one of the `drafts` of a stage. What `placement:` asks for is meant for
    the work on models; where a stage has such a job, its other jobs get the defaults."""
    heavy = _is_heavy(draft)
    meant = _is_meant(draft, drafts)
    asked = {name: _integer(stage, name) if meant else None for name in RESOURCE_NAMES}
    return Resources(
        cpus=asked["cpus"] or max(COMPUTE_CPUS if heavy else 1, draft.processes),
        gpus=asked["gpus"] or 0,
        mem_mb=asked["mem_mb"],
        minutes=asked["minutes"],
    )


def requested_resources(
    stage: Stage, draft: JobDraft, drafts: tuple[JobDraft, ...]
) -> Mapping[str, ResourceRequest]:
    """What `placement:` says of one of the `drafts`, with its places."""
    names = stage.placement if _is_meant(draft, drafts) else EVERY_JOB_NAMES
    found: dict[str, ResourceRequest] = {}
    for name in sorted(names):
        value = stage.placement.get(name)
        if value is not None and value.json is not None:
            span = value.span or stage_span(stage, f"placement.{name}")
            found[name] = ResourceRequest(value.json, PurePath(span.source.name).name, span.line)
    return found


def _is_meant(draft: JobDraft, drafts: tuple[JobDraft, ...]) -> bool:
    return _is_heavy(draft) or not any(_is_heavy(other) for other in drafts)


def _is_heavy(draft: JobDraft) -> bool:
    """Whether the job trains a model, or serves one within its own resources."""
    return holds_model(draft) or draft.kind in MODEL_MAKERS


def server_resources(role: str, placement: Mapping[str, Json]) -> Resources:
    """The resources of a shared server, which is a job of its own."""
    asked = {name: placement.get(name) for name in RESOURCE_NAMES}
    found = {name: value if isinstance(value, int) else None for name, value in asked.items()}
    return Resources(
        cpus=found["cpus"] or (COMPUTE_CPUS if is_model_server(role) else 1),
        gpus=found["gpus"] or 0,
        mem_mb=found["mem_mb"],
        minutes=found["minutes"],
    )


def requested_server_resources(
    role: str, entry: str, placement: Mapping[str, Json]
) -> Mapping[str, ResourceRequest]:
    """What the spec's entry says of a shared server's place."""
    where = f"{'servers' if is_model_server(role) else 'environments'}.{entry}.placement"
    given = {name: value for name, value in sorted(placement.items()) if value is not None}
    return {name: ResourceRequest(value, where, None) for name, value in given.items()}


def server_placement(placement: Mapping[str, Json]) -> Mapping[str, Json]:
    """What else is said of a shared server's place: a partition, say."""
    return {
        name: value
        for name, value in placement.items()
        if name not in (*RESOURCE_NAMES, CARD) and value is not None
    }


def job_placement(asked: Mapping[str, ResourceRequest], draft: JobDraft) -> Mapping[str, Json]:
    """What the program is told about its place: the backend's own words and the spec's."""
    untold = (*RESOURCE_NAMES, RETRIES, CARD, LOCAL)
    given = {name: each.value for name, each in asked.items() if name not in untold}
    return {**draft.placement, **given}


def _integer(stage: Stage, name: str) -> int | None:
    value = stage.placement.get(name)
    return value.json if value is not None and isinstance(value.json, int) else None
