"""lower: turn stages into jobs without keys, and hold backends to the honoured-keys contract.
assign_keys: give every job its content key.

Requires: backends chosen (lower), jobs in topological order (assign_keys). Ensures: a plan whose
jobs stand in topological order, each with program, configuration, leases and identity; or
diagnostics that name every setting which would be lost or refused, and the backends that would
honour it. No plan is made when anything is wrong. After assign_keys two jobs with one key are the
same work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath

from agentc.backend_api import JobDraft, LeaseDraft, Software, StageBackend
from agentc.diagnostics.diagnostic import Origin, uses_of
from agentc.ir.module import Module, Resource, Stage, ordered, stage_span
from agentc.passes.lowering.leases import PathEscape, served_roles, software_needed
from agentc.passes.lowering.module_context import ModuleContext
from agentc.passes.lowering.reports import (
    report_defaults,
    report_marked_rows,
    report_resources,
    report_stage,
)
from agentc.passes.lowering.resources import job_placement, job_resources, requested_resources
from agentc.passes.lowering.software import read_locks, report_misfits, report_unused
from agentc.passes.lowering.trial import LoweringTrial, attempt_lowering
from agentc.passes.unit import PassContext, Unit
from agentc.plan.job import (
    Job,
    JobBody,
    Lease,
    Plan,
    SoftwareLock,
    SourcePlace,
)
from agentc.plan.keys import CanonicalTexts, job_key
from agentc.runtime.software.lock_text import LockTextError, enumerate_names, read_lock_text
from agentc.source.files import VARIABLE


def lower(unit: Unit, context: PassContext) -> Unit:
    """Lower every stage, and check every environment and server, used or not."""
    module = unit.module
    if module is None:
        return unit
    lowering = ModuleContext(module, context.table, context.boundary, context.references)
    locks = read_locks(module, context)
    report_misfits(module, locks, context)
    software = _SoftwareNames(locks)
    made = _Jobs(software)
    jobs: list[Job] = []
    attempts: list[tuple[Stage, LoweringTrial]] = []
    report_resources(module, lowering, context)
    for section, entries in (("environment", module.environments), ("server", module.servers)):
        for name, entry in entries.items():
            tried = lowering.resource(section, name)
            if tried is not None and tried.outside is not None:
                _report_outside(entry, name, tried.outside, context)
    for stage in ordered(module):
        backend = context.table.backends.get(stage.backend)
        if not isinstance(backend, StageBackend):
            continue
        attempt = attempt_lowering(stage, backend, lowering)
        attempts.append((stage, attempt))
        if attempt.outside is not None:
            _report_outside(stage, stage.id, attempt.outside, context)
        report_stage(stage, attempt, lowering, context)
        _report_locks(stage, attempt.drafts, module.software, context)
        jobs += made.of_stage(stage, attempt.drafts)
    report_defaults(attempts, lowering, context, whole=module.whole)
    report_marked_rows(attempts, module, context)
    if not context.sink.has_errors:
        report_unused(module, software.used, context)
    if context.sink.has_errors:
        return unit
    source = _origin(module).span.source
    plan = Plan(
        name=module.name,
        spec_file=PurePath(source.name).name,
        spec_sha256=hashlib.sha256(source.text.encode("utf-8")).hexdigest(),
        params=module.params,
        chosen=module.chosen,
        software=software.locks(),
        jobs=tuple(jobs),
    )
    return replace(unit, plan=plan)


def _report_outside(
    entry: Stage | Resource, name: str, outside: PathEscape, context: PassContext
) -> None:
    context.sink.error(
        "AGC123",
        f"`{name}` names a place outside of the spec's folder: {outside.place}",
        entry.origin.span if outside.setting is None else stage_span(entry, outside.setting),
        notes=("a spec of another user could otherwise read any of your files",),
        fix=f"if this spec may read it: `--allow-path {Path(outside.place).parent}`, "
        f"or put the directory into {VARIABLE}",
        steps=entry.origin.steps,
    )


def _report_locks(
    stage: Stage, drafts: tuple[JobDraft, ...], own: Collection[str], context: PassContext
) -> None:
    """Locks that backends bring along and nobody can obey; those in `own` are replaced."""
    for draft in drafts:
        for software in software_needed(draft):
            code, wrong = _wrong_with(software.text)
            if code and software.name not in own:
                if software.file is not None:
                    context.sink.error(
                        code,
                        f"the lock {software.file} {wrong}",
                        stage_span(stage, "requirements"),
                        fix=f"`agentc software hash {software.file}` adds hashes to exact versions",
                        steps=stage.origin.steps,
                    )
                    continue
                context.sink.error(
                    code,
                    f"the lock of software stack `{software.name}` {wrong}",
                    notes=(f"`{stage.id}` needs it, for the backend `{draft.backend}`",),
                    fix="its backend's authors have to fix it",
                )


@lru_cache(maxsize=64)
def _wrong_with(lock: str) -> tuple[str, str]:
    """A diagnostic code and what it says of the lock; "" twice where nothing is wrong."""
    try:
        unhashed = read_lock_text(lock).unhashed
    except LockTextError as error:
        return "AGC671", f"cannot be read: {error}"
    return ("AGC675", f"has no hash for {enumerate_names(unhashed)}") if unhashed else ("", "")


class _SoftwareNames:
    """Names software stacks; two locks that claim one name get different ones. `own` are those
    that the spec gives locks for."""

    def __init__(self, own: Mapping[str, Software]) -> None:
        self._own = own
        self._names: dict[tuple[str, str], str] = {}
        self._locks: dict[str, SoftwareLock] = {}
        self.used: set[str] = set()

    def name(self, software: Software) -> str:
        self.used.add(software.name)
        software = self._own.get(software.name, software)
        wanted = (software.name, software.text)
        if wanted not in self._names:
            name = software.name
            if name in self._locks:
                name += "-" + SoftwareLock(name=name, lock=software.text).sha256[:8]
            self._names[wanted] = name
            self._locks[name] = SoftwareLock(name=name, lock=software.text)
        return self._names[wanted]

    def locks(self) -> dict[str, SoftwareLock]:
        return dict(sorted(self._locks.items()))


class _Jobs:
    """Makes jobs of drafts: once for each draft, then for each stage that it was lowered for."""

    def __init__(self, software: _SoftwareNames) -> None:
        self._software = software
        self._leases: dict[LeaseDraft, Lease] = {}
        self._made: dict[JobDraft, Job] = {}

    def of_stage(self, stage: Stage, drafts: tuple[JobDraft, ...]) -> Iterator[Job]:
        for draft in drafts:
            if draft not in self._made:
                self._made[draft] = self._job(stage, draft, drafts)
            inputs = {
                role: tuple(_job_id(stage.id, i[1:]) if i.startswith(":") else i for i in ids)
                for role, ids in stage.fill(draft.inputs).items()
            }
            for served in served_roles(draft):  # perhaps of a server that the environment asks
                if served not in inputs and served in stage.inputs:
                    inputs[served] = stage.inputs[served]
            yield replace(
                self._made[draft],
                id=_job_id(stage.id, draft.name),
                stage=stage.id,
                inputs=inputs,
                origin=_place(stage.origin),
                round=stage.round,
            )

    def _job(self, stage: Stage, draft: JobDraft, drafts: tuple[JobDraft, ...]) -> Job:
        """The job of a stage, which all stages of its body have but for names and places."""
        asked = requested_resources(stage, draft, drafts)
        body = JobBody(
            draft=replace(draft, placement=job_placement(asked, draft)),
            software=self._software.name(draft.software),
            identity={"settings": draft.view.identity(), "facts": dict(draft.extra_identity)},
            asked=asked,
        )
        return Job(
            body=body,
            id=draft.name,
            stage=stage.id,
            inputs=draft.inputs,
            origin=_place(stage.origin),
            leases=tuple(map(self._lease, draft.leases)),
            resources=job_resources(stage, draft, drafts),
        )

    def _lease(self, draft: LeaseDraft) -> Lease:
        if draft not in self._leases:
            software = draft.software
            name = None if software is None else self._software.name(software)
            self._leases[draft] = Lease(draft=draft, software=name)
        return self._leases[draft]


def _job_id(stage: str, name: str) -> str:
    return f"{stage}:{name}" if name else stage


def _place(origin: Origin) -> SourcePlace:
    span = origin.span
    return SourcePlace(
        file=_file_name(span.source.name),
        line=span.line,
        column=span.column,
        steps=(
            *(f"used at {_file_name(at.source.name)}:{at.line}" for at in uses_of(span)),
            *origin.steps,
        ),
    )


@lru_cache(maxsize=64)
def _file_name(shown: str) -> str:
    return PurePath(shown).name


def _origin(module: Module) -> Origin:
    return module.origin or next(iter(module.stages.values())).origin


def assign_keys(unit: Unit, context: PassContext) -> Unit:
    """Walk the jobs in order, so that the keys of inputs are known."""
    plan = unit.plan
    if plan is None:
        return unit
    keys: dict[str, str] = {}
    texts = CanonicalTexts()
    jobs: list[Job] = []
    for job in plan.jobs:
        keys[job.id] = job_key(job, plan.software, keys, texts)
        jobs.append(replace(job, key=keys[job.id]))
    return replace(unit, plan=replace(plan, jobs=tuple(jobs)))
