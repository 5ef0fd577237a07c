"""plan.json: a Plan as plain JSON, and back (docs/design/contracts.md, section 2); text.py writes
it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agentc.collection import paused_collection
from agentc.kinds.field import Json
from agentc.plan.canonical import plain_json
from agentc.plan.job import Asked, Job, Lease, Place, Plan, Resources, Server

PLAN_VERSION = 1


@paused_collection()
def plan_document(plan: Plan) -> dict[str, Json]:
    """The plan as plain JSON, inputs and targets written as objects (`<kind>/<key>`)."""
    objects = {job.id: job.object for job in plan.jobs}
    return {
        "plan": PLAN_VERSION,
        "name": plan.name,
        "spec": {"file": plan.spec_file, "sha256": plan.spec_sha256},
        "params": plain_json(plan.params),
        **({"chosen": plain_json(plan.chosen)} if plan.chosen else {}),
        "environments": {
            name: {"lock": lock.sha256, "file": f"environments/{name}.txt"}
            for name, lock in sorted(plan.environments.items())
        },
        "jobs": [_job(job, objects) for job in plan.jobs],
        "sessions": [
            {"id": session.id, "key": session.key, "members": list(session.members)}
            for session in plan.sessions
        ],
        **({"servers": [_server(one, objects) for one in plan.servers]} if plan.servers else {}),
        "targets": [objects[i] for i in plan.targets],
        "experiment": plain_json(plan.experiment),
    }


def _job(job: Job, objects: Mapping[str, str]) -> dict[str, Json]:
    return {
        "id": job.id,
        "stage": job.stage,
        "kind": job.kind,
        "backend": job.backend,
        "version": job.version,
        "key": job.key,
        "produces": job.produces,
        "round": job.round,
        "environment": job.environment,
        "program": list(job.program),
        "processes": job.processes,
        "inputs": {role: [objects[i] for i in ids] for role, ids in job.inputs.items()},
        "config": plain_json(job.config),
        "placement": plain_json(job.placement),
        "identity": plain_json(job.identity),
        "leases": [_lease(lease) for lease in job.leases],
        "contract": plain_json(job.contract),
        **({"secrets": plain_json(job.secrets)} if job.secrets else {}),
        "resources": _resources(job.resources),
        "asked": {name: _asked(each) for name, each in job.asked.items()},
        "resume": job.resume,
        "origin": _origin(job.origin),
    }


def _lease(lease: Lease) -> dict[str, Json]:
    return {
        "role": lease.role,
        "backend": lease.backend,
        "version": lease.version,
        "environment": lease.environment,
        "program": list(lease.program),
        "identity": plain_json(lease.identity),
        "port": lease.port,
        "probe": lease.probe,
        "identity_check": lease.identity_check,
        "expect": plain_json(lease.expect),
        "url": lease.url,
        "input": lease.input,
        "variables": plain_json(lease.variables),
        "secrets": plain_json(lease.secrets),
        "ready_timeout_s": lease.ready_timeout_s,
        "served_name": lease.served_name,
        "client": plain_json(lease.client),
        **({"server": lease.server} if lease.server else {}),
        **({"ranks": plain_json(lease.ranks)} if lease.ranks else {}),
    }


def _server(server: Server, objects: Mapping[str, str]) -> dict[str, Json]:
    return {
        "id": server.id,
        "key": server.key,
        "scope": server.scope,
        "replicas": server.replicas,
        "lease": _lease(server.lease),
        "model": None if server.model is None else objects[server.model],
        "resources": _resources(server.resources),
        "asked": {name: _asked(each) for name, each in server.asked.items()},
        "placement": plain_json(server.placement),
        "network": server.network,
        "clients": list(server.clients),
    }


def _resources(asked: Resources) -> dict[str, Json]:
    return {
        "cpus": asked.cpus,
        "gpus": asked.gpus,
        "mem_mb": asked.mem_mb,
        "minutes": asked.minutes,
    }


def _asked(asked: Asked) -> dict[str, Json]:
    return {"value": plain_json(asked.value), "file": asked.file, "line": asked.line}


def _origin(place: Place) -> dict[str, Json]:
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "steps": list(place.steps),
    }


def read_document(text: str) -> dict[str, Json]:
    """A plan.json that some run left behind. Raises ValueError when it is none."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is no plan: {error.msg} at line {error.lineno}") from None
    if not isinstance(document, dict) or document.get("plan") != PLAN_VERSION:
        raise ValueError("this is no plan of version 1")
    return document
