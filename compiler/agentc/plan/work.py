"""Work: what a plan means for a store: which jobs it has, which must run, which servers start.

`plan`, `run`, `status`, `graph` and the report all read this one object, so that what is shown is
what runs. It works on plan.json as decoded JSON: `status` and `report` need no compiler.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentc.exit_codes import EXIT_NOT_FOUND, CommandError
from agentc.lease_roles import FUSED_ROLES, is_model_server
from agentc.plan.job import Plan
from agentc.plan.stage_names import matching_names, nearest
from agentc.runtime.servers.job_leases import PlannedLease
from agentc.runtime.store.layout import StoreLayout
from agentc.store.presence import find_published

Document: TypeAlias = Mapping[str, Any]
"""plan.json, decoded."""

State: TypeAlias = Literal["cached", "run", "unneeded"]
"""cached: the store has it. run: missing and wanted. unneeded: missing, but nothing that must run
reads it."""


class UnknownStageError(CommandError):
    """No stage of that name; its text offers the nearest."""

    exit_code = EXIT_NOT_FOUND

    def __init__(self, plan: str, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"{plan} has no stage `{name}`; {nearest(name, known)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Jobs in the plan's order (topological), each object once. `needed` leads to what is wanted;
    of these, `present` are in the store and `missing` have to run: a job whose product exists
    needs nothing before it. The store was looked at once, when this was made.

    `states` (of jobs that are needed), `twins` and `sessions` go by job id. A twin is a job that
    another one makes along (equal work, one key); a session is a server that several jobs share.
    `server_starts` counts model servers that would start, `saved_starts` those that sessions spare.
    """

    document: Document
    layout: StoreLayout
    wanted: tuple[str, ...]
    needed: tuple[Mapping[str, Any], ...]
    present: tuple[Mapping[str, Any], ...]
    missing: tuple[Mapping[str, Any], ...]
    states: Mapping[str, State]
    twins: Mapping[str, str]
    sessions: Mapping[str, str]
    server_starts: int
    saved_starts: int

    def count(self, state: State) -> int:
        """How many pieces of work are in a state; equal work counts once."""
        return sum(found == state for name, found in self.states.items() if name not in self.twins)

    def manifests(self) -> tuple[Path, ...]:
        """What to ask Snakemake for: the manifests of the wanted objects, or those of the
        sessions that make them."""
        made_by = {member: session for session, member in _session_members(self.document)}
        names = dict.fromkeys(made_by.get(name, name) for name in self.wanted)
        return tuple(self.layout.manifest(name) for name in names)

    def software(self) -> tuple[str, ...]:
        """Names of the software stacks that the missing jobs run in."""
        names: dict[str, None] = {}
        for job in self.missing:
            names[job["software"]] = None
            for lease in job["leases"]:
                if lease.get("software"):
                    names[lease["software"]] = None
        return tuple(names)


def object_of(job: Mapping[str, Any]) -> str:
    """The object that a job makes."""
    return f"{job['kind']}/{job['key']}"


def read_plan(path: Path) -> Document:
    """A plan.json. Raises OSError or ValueError."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or "jobs" not in document:
        raise ValueError(f"{path} is no plan")
    return document


def find_work(
    document: Document, layout: StoreLayout, until: str | None = None, *, anew: bool = False
) -> Work:
    """What has to be done for the plan's targets, or for the stages that `until` means. With
    `anew` nothing is believed that this node remembers of a shared file system.

    Raises UnknownStageError, and OSError when the store cannot be read.
    """
    jobs = document["jobs"]
    wanted = tuple(document["targets"])
    if until is not None:
        stages = tuple(dict.fromkeys(job["stage"] for job in jobs))
        meant = matching_names(until, stages)
        if not meant:
            raise UnknownStageError(str(document["name"]), until, stages)
        wanted = tuple(object_of(job) for job in jobs if job["stage"] in meant)
    return _work(document, layout, wanted, anew)


def work_towards(document: Document, layout: StoreLayout, wanted: Iterable[str]) -> Work:
    """What has to be done for these objects of the plan. Raises OSError."""
    return _work(document, layout, tuple(wanted), anew=False)


def refresh_work(work: Work) -> Work:
    """The same work by what the store has now."""
    return _work(work.document, work.layout, work.wanted, anew=True)


def _work(document: Document, layout: StoreLayout, wanted: tuple[str, ...], anew: bool) -> Work:
    jobs = document["jobs"]
    makers: dict[str, Mapping[str, Any]] = {}
    twins: dict[str, str] = {}
    for job in jobs:
        maker = makers.setdefault(object_of(job), job)
        if maker is not job:
            twins[str(job["id"])] = str(maker["id"])
    together = _together(document)
    stored = find_published(layout, makers, anew=anew)
    # What is asked for itself is looked at itself: nothing stands behind it that would notice.
    stored -= {name for name in wanted if name in stored and not layout.is_published(name)}
    needed = _reach(makers, wanted, set(), together)
    missing = _reach(makers, wanted, stored, together)
    session_of = {m: s["id"] for s in document.get("sessions") or [] for m in s["members"]}
    serving = [start for name in missing for start in _model_servers(makers[name], session_of)]
    starts = len(set(serving))
    return Work(
        document=document,
        layout=layout,
        wanted=wanted,
        needed=tuple(job for name, job in makers.items() if name in needed),
        present=tuple(job for name, job in makers.items() if name in needed and name in stored),
        missing=tuple(job for name, job in makers.items() if name in missing),
        states=_states(jobs, needed, stored, missing),
        twins=twins,
        sessions=session_of,
        server_starts=starts,
        saved_starts=len(serving) - starts,
    )


def _states(
    jobs: Iterable[Mapping[str, Any]],
    needed: Collection[str],
    stored: Collection[str],
    missing: Collection[str],
) -> dict[str, State]:
    """The state of each job that is needed, by id."""
    states: dict[str, State] = {}
    for job in jobs:
        name = object_of(job)
        if name in needed:
            state: State = "run" if name in missing else "unneeded"
            states[job["id"]] = "cached" if name in stored else state
    return states


def _reach(
    makers: Mapping[str, Mapping[str, Any]],
    wanted: Iterable[str],
    stop_at: set[str],
    together: Mapping[str, list[str]],
) -> set[str]:
    """Objects that lead to the wanted ones without passing through one of `stop_at`. Members of
    a session come along with each other: they run on one server."""
    found: set[str] = set()
    open_ends = [name for name in wanted if name not in stop_at]
    while open_ends:
        name = open_ends.pop()
        if name in found:
            continue
        found.add(name)
        for names in (*makers[name]["inputs"].values(), together.get(name, ())):
            open_ends += [one for one in names if one not in stop_at]
    return found


def _model_servers(job: Mapping[str, Any], session_of: Mapping[str, str]) -> list[tuple[str, ...]]:
    """What starts each model server of a job: a shared server, a session, or the job alone. Members
    of a session that mean the same by a role have one."""
    own = session_of.get(str(job["id"]), str(job["id"]))
    found: list[tuple[str, ...]] = []
    for lease in job["leases"]:
        if not is_model_server(lease["role"]) or lease["port"] == "none":
            continue
        if lease.get("server"):
            found.append((str(lease["server"]),))
        elif lease["role"] in FUSED_ROLES:
            found.append((own,))
        else:
            found.append((own, str(lease["role"]), PlannedLease(job, lease).identity))
    return found


def _together(document: Document) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for session, member in _session_members(document):
        members.setdefault(session, []).append(member)
    return {member: names for names in members.values() for member in names}


def _session_members(document: Document) -> list[tuple[str, str]]:
    by_id = {job["id"]: object_of(job) for job in document["jobs"]}
    return [
        (f"session/{session['key']}", by_id[member])
        for session in document.get("sessions") or []
        for member in session["members"]
    ]


def plan_until(plan: Plan, until: str | None) -> Plan:
    """The plan with the jobs of the stages that `until` means as targets; all its jobs stay, since
    what a job is does not depend on what is asked for. None changes nothing.

    Raises UnknownStageError.
    """
    if until is None:
        return plan
    stages = tuple(dict.fromkeys(job.stage for job in plan.jobs))
    meant = matching_names(until, stages)
    if not meant:
        raise UnknownStageError(plan.name, until, stages)
    return replace(plan, targets=tuple(job.id for job in plan.jobs if job.stage in meant))
