"""Work: which jobs of a plan are needed for what is wanted, and which of them are missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.runtime.layout import StoreLayout

Document = Mapping[str, Any]
"""plan.json, decoded."""


class UnknownStageError(Exception):
    """No stage of that name; `known` are the names there are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"the plan has no stage {name!r}")
        self.name = name
        self.known = known


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Jobs in the plan's order (topological). `needed` leads to what is wanted; `missing` is the
    part that has to run: a job whose product exists needs nothing before it."""

    document: Document
    layout: StoreLayout
    wanted: tuple[str, ...]
    needed: tuple[Mapping[str, Any], ...]
    missing: tuple[Mapping[str, Any], ...]

    @property
    def present(self) -> tuple[Mapping[str, Any], ...]:
        """Needed jobs whose objects the store has."""
        return tuple(job for job in self.needed if self.layout.is_published(object_of(job)))

    def manifests(self) -> tuple[Path, ...]:
        """What to ask Snakemake for: the manifests of the wanted objects, or those of the
        sessions that make them."""
        made_by = {member: session for session, member in _session_members(self.document)}
        names = dict.fromkeys(made_by.get(name, name) for name in self.wanted)
        return tuple(self.layout.manifest(name) for name in names)

    def environments(self) -> tuple[str, ...]:
        """Names of the software environments that the missing jobs run in."""
        names: dict[str, None] = {}
        for job in self.missing:
            names[job["environment"]] = None
            for lease in job["leases"]:
                if lease.get("environment"):
                    names[lease["environment"]] = None
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


def find_work(document: Document, layout: StoreLayout, until: str | None = None) -> Work:
    """What has to be done for the plan's targets, or for one stage.

    Raises UnknownStageError.
    """
    jobs = document["jobs"]
    wanted = tuple(document["targets"])
    if until is not None:
        stages = tuple(dict.fromkeys(job["stage"] for job in jobs))
        if until not in stages:
            raise UnknownStageError(until, stages)
        wanted = tuple(object_of(job) for job in jobs if job["stage"] == until)
    together = _together(document)
    needed = _reach(jobs, wanted, set(), together)
    present = {object_of(job) for job in needed if layout.is_published(object_of(job))}
    missing = _reach(jobs, wanted, present, together)
    return Work(document=document, layout=layout, wanted=wanted, needed=needed, missing=missing)


def _reach(
    jobs: Iterable[Mapping[str, Any]],
    wanted: Iterable[str],
    stop_at: set[str],
    together: Mapping[str, list[str]],
) -> tuple[Mapping[str, Any], ...]:
    """Jobs that lead to the wanted objects without passing through one of `stop_at`, each key
    once. Members of a session come along with each other: they run on one server."""
    makers: dict[str, Mapping[str, Any]] = {}
    for job in jobs:
        makers.setdefault(object_of(job), job)
    found: set[str] = set()
    open_ends = [name for name in wanted if name not in stop_at]
    while open_ends:
        name = open_ends.pop()
        if name in found:
            continue
        found.add(name)
        for names in (*makers[name]["inputs"].values(), together.get(name, ())):
            open_ends += [one for one in names if one not in stop_at]
    return tuple(job for name, job in makers.items() if name in found)


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
