"""lower: turn stages into jobs without keys, and hold backends to the honoured-keys contract.

Requires: backends chosen.
Ensures: a plan whose jobs stand in topological order, each with program, configuration, leases
and identity; or diagnostics that name every setting which would be lost or refused, and the
backends that would honour it. No plan is made when anything is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath

from agentc.backend_api import JobDraft, LeaseDraft, SoftwareEnvironment, StageBackend
from agentc.ir.module import Module, Resource, Stage
from agentc.passes.context import PassContext
from agentc.passes.honour import report_defaults, report_resources, report_stage
from agentc.passes.lowering import Attempt, ModuleContext, Outside, attempt_lowering
from agentc.passes.order import ordered
from agentc.passes.place import stage_span
from agentc.passes.size import asked_of, job_placement, job_resources
from agentc.passes.software import read_locks, report_unused
from agentc.passes.unit import Unit
from agentc.plan.job import EnvLock, Job, Lease, Place, Plan
from agentc.runtime.lock_text import LockTextError, read_lock_text
from agentc.source.boundary import VARIABLE
from agentc.source.span import Origin, uses_of


def lower(unit: Unit, context: PassContext) -> Unit:
    """Lower every stage, and check every environment and server, used or not."""
    module = unit.module
    if module is None:
        return unit
    lowering = ModuleContext(module, context.table, context.boundary, context.references)
    environments = _Environments(read_locks(module, context))
    jobs: list[Job] = []
    attempts: list[tuple[Stage, Attempt]] = []
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
        jobs += [_job(stage, draft, attempt.drafts, environments) for draft in attempt.drafts]
    report_defaults(attempts, lowering, context)
    if not context.sink.has_errors:
        report_unused(module, environments.used, context.sink)
    if context.sink.has_errors:
        return unit
    source = _origin(module).span.source
    plan = Plan(
        name=module.name,
        spec_file=PurePath(source.name).name,
        spec_sha256=EnvLock(name="", lock=source.text).sha256,
        params=module.params,
        chosen=module.chosen,
        environments=environments.locks(),
        jobs=tuple(jobs),
    )
    return replace(unit, plan=plan)


def _report_outside(
    entry: Stage | Resource, name: str, outside: Outside, context: PassContext
) -> None:
    context.sink.error(
        "AGC123",
        f"`{name}` names a place outside of the spec's folder: {outside.place}",
        entry.origin.span if outside.setting is None else stage_span(entry, outside.setting),
        notes=("a spec of somebody else could otherwise read any file of yours",),
        fix=f"if this spec may read it: `--allow-path {Path(outside.place).parent}`, "
        f"or put the directory into {VARIABLE}",
        steps=entry.origin.steps,
    )


def _report_locks(
    stage: Stage, drafts: tuple[JobDraft, ...], own: Collection[str], context: PassContext
) -> None:
    """Locks that backends bring along and nobody can obey; those in `own` are replaced."""
    for draft in drafts:
        leased = [lease.software for lease in draft.leases if lease.software is not None]
        for software in (draft.software, *leased):
            wrong = _wrong_with(software.text)
            if wrong is not None and software.name not in own:
                context.sink.error(
                    "AGC671",
                    f"the lock of software environment `{software.name}` cannot be read: {wrong}",
                    notes=(f"`{stage.id}` needs it, for the backend `{draft.backend}`",),
                    fix="its backend's authors have to mend it",
                )


@lru_cache(maxsize=64)
def _wrong_with(lock: str) -> str | None:
    try:
        read_lock_text(lock)
    except LockTextError as error:
        return str(error)
    return None


class _Environments:
    """Names software environments; two locks that claim one name are told apart. `own` are those
    that the spec gives locks for."""

    def __init__(self, own: Mapping[str, SoftwareEnvironment]) -> None:
        self._own = own
        self._names: dict[tuple[str, str], str] = {}
        self._locks: dict[str, EnvLock] = {}
        self.used: set[str] = set()

    def name(self, software: SoftwareEnvironment) -> str:
        self.used.add(software.name)
        software = self._own.get(software.name, software)
        wanted = (software.name, software.text)
        if wanted not in self._names:
            name = software.name
            if name in self._locks:
                name += "-" + EnvLock(name=name, lock=software.text).sha256[:8]
            self._names[wanted] = name
            self._locks[name] = EnvLock(name=name, lock=software.text)
        return self._names[wanted]

    def locks(self) -> dict[str, EnvLock]:
        return dict(sorted(self._locks.items()))


def _job(
    stage: Stage, draft: JobDraft, drafts: tuple[JobDraft, ...], environments: _Environments
) -> Job:
    asked = asked_of(stage, draft, drafts)
    return Job(
        id=_job_id(stage.id, draft.name),
        stage=stage.id,
        kind=draft.kind,
        backend=draft.backend,
        version=draft.version,
        produces=draft.produces,
        environment=environments.name(draft.software),
        program=draft.program,
        inputs={
            role: tuple(_job_id(stage.id, i[1:]) if i.startswith(":") else i for i in ids)
            for role, ids in draft.inputs.items()
        },
        config=draft.config,
        identity={"settings": draft.view.identity(), "facts": dict(draft.extra_identity)},
        origin=_place(stage.origin),
        placement=job_placement(asked, draft),
        asked=asked,
        leases=tuple(_lease(lease, environments) for lease in draft.leases),
        contract=draft.contract,
        secrets=draft.secrets,
        resources=job_resources(stage, draft, drafts),
        processes=draft.processes,
        resume=draft.resume,
        round=stage.round,
    )


def _lease(draft: LeaseDraft, environments: _Environments) -> Lease:
    return Lease(
        role=draft.role,
        backend=draft.backend,
        version=draft.version,
        environment=None if draft.software is None else environments.name(draft.software),
        program=draft.program,
        identity=draft.identity,
        port=draft.port,
        probe=draft.probe,
        identity_check=draft.identity_check,
        expect=draft.expect,
        url=draft.url,
        input=draft.input,
        variables=draft.environment_variables,
        secrets=draft.secrets,
        ready_timeout_s=draft.ready_timeout_s,
        served_name=draft.served_name,
        client=draft.client,
        entry=draft.entry,
        scope=draft.scope,
        replicas=draft.replicas,
        placement=draft.placement,
        ranks={} if draft.ranks is None else draft.ranks.record(),
    )


def _job_id(stage: str, name: str) -> str:
    return f"{stage}:{name}" if name else stage


def _place(origin: Origin) -> Place:
    span = origin.span
    return Place(
        file=PurePath(span.source.name).name,
        line=span.line,
        column=span.column,
        steps=(
            *(f"used at {PurePath(at.source.name).name}:{at.line}" for at in uses_of(span)),
            *origin.steps,
        ),
    )


def _origin(module: Module) -> Origin:
    return module.origin or next(iter(module.stages.values())).origin
