"""Verifier of the plan level: what emission and the runtime rely on."""

from __future__ import annotations

import re

from agentc.backend_api import JobDraft
from agentc.plan.job import Job, Plan
from agentc.plan.keys import DIGITS, plain_json

_KEY = re.compile(f"[0-9a-f]{{{DIGITS}}}")


def verify_plan(plan: Plan) -> list[str]:
    """The invariants that do not hold, as sentences; empty for a sound plan."""
    faults: list[str] = []
    known: set[str] = set()
    by_key: dict[str, Job] = {}
    keyed = any(job.key for job in plan.jobs)
    for job in plan.jobs:
        if job.id in known:
            faults.append(f"two jobs are called {job.id}")
        faults += [
            f"{job.id} reads {parent}, which does not be before it"
            for parent in job.parents()
            if parent not in known
        ]
        known.add(job.id)
        if job.software not in plan.software:
            faults.append(f"{job.id} runs in the unknown software stack {job.software}")
        faults += [
            f"the {lease.draft.role} lease of {job.id} serves the unknown role {lease.draft.input}"
            for lease in job.leases
            if lease.draft.input is not None and lease.draft.input not in job.inputs
        ]
        if len({lease.draft.role for lease in job.leases}) != len(job.leases):
            faults.append(f"{job.id} has two leases of one role")
        faults += _needs(job)
        faults += _written(job)
        if not keyed:
            continue
        if not _KEY.fullmatch(job.key):
            faults.append(f"{job.id} has the key {job.key!r}")
        same = by_key.setdefault(job.key, job)
        if _work(same.draft) != _work(job.draft):
            faults.append(f"{same.id} and {job.id} are different work under one key")
    faults += [f"the target {name} is no job" for name in plan.targets if name not in known]
    return faults + _sessions(plan) + _servers(plan)


def _work(draft: JobDraft) -> tuple[str, tuple[str, ...], str]:
    return draft.kind, draft.program, draft.produces


def _needs(job: Job) -> list[str]:
    there = {lease.draft.role for lease in job.leases}
    return [
        f"the {lease.draft.role} lease of {job.id} needs {role}, which the job does not lease"
        for lease in job.leases
        for role in lease.draft.needs
        if role not in there
    ] + [
        f"the {lease.draft.role} lease of {job.id} needs others and is not the job's own server"
        for lease in job.leases
        if lease.draft.needs and (lease.draft.scope != "job" or lease.draft.port == "inside")
    ]


def _written(job: Job) -> list[str]:
    try:
        draft = job.draft
        for part in (draft.config, draft.placement, job.identity, draft.contract, draft.expected):
            plain_json(part)
    except TypeError as error:
        return [f"{job.id} cannot be written down: {error}"]
    return []


def _sessions(plan: Plan) -> list[str]:
    jobs = plan.by_id()
    member_of: dict[str, str] = {}
    faults: list[str] = []
    for session in plan.sessions:
        if len({jobs[name].key for name in session.members if name in jobs}) < 2:
            faults.append(f"{session.id} joins fewer than two pieces of work")
        for name in session.members:
            if name not in jobs:
                faults.append(f"{session.id} has the unknown member {name}")
            if name in member_of:
                faults.append(f"{name} is a member of {member_of[name]} and {session.id}")
            member_of[name] = session.id
    if not faults and _is_cyclic(plan, member_of):
        faults.append("sessions wait for each other in a circle")
    return faults


def _servers(plan: Plan) -> list[str]:
    jobs = plan.by_id()
    faults: list[str] = []
    known = {server.id: server for server in plan.servers}
    if len(known) < len(plan.servers):
        faults.append("two shared servers have one name")
    for server in plan.servers:
        faults += [
            f"{server.id} has the client {name}, which does not lease it"
            for name in server.clients
            if name not in jobs or server.id not in {one.server for one in jobs[name].leases}
        ]
    for job in plan.jobs:
        faults += [
            f"{job.id} leases {lease.server}, which does not have it among its clients"
            for lease in job.leases
            if lease.server
            and (lease.server not in known or job.id not in known[lease.server].clients)
        ]
    return faults


def _is_cyclic(plan: Plan, member_of: dict[str, str]) -> bool:
    """Whether the graph of sessions and other jobs has a circle (Kahn's algorithm)."""
    nodes = {job.id: ("session", member_of[job.id]) for job in plan.jobs if job.id in member_of}
    nodes |= {job.id: ("job", job.id) for job in plan.jobs if job.id not in member_of}
    children: dict[tuple[str, str], set[tuple[str, str]]] = {node: set() for node in nodes.values()}
    for job in plan.jobs:
        for parent in job.parents():
            # Members of a session wait for each other inside it.
            if nodes[parent] != nodes[job.id]:
                children[nodes[parent]].add(nodes[job.id])
    waiting = dict.fromkeys(children, 0)
    for after in children.values():
        for node in after:
            waiting[node] += 1
    free = [node for node, count in waiting.items() if count == 0]
    done = 0
    while free:
        done += 1
        for node in children[free.pop()]:
            waiting[node] -= 1
            if waiting[node] == 0:
                free.append(node)
    return done < len(children)
