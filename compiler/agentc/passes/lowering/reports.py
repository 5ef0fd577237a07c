"""Reports what lowering would lose or refuse, naming the backends that would honour it.

The names are found by really lowering the stage on the other backends of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agentc.backend_api import Backend, EnvironmentBackend, Refusal, ServerBackend
from agentc.backend_api.honoured import honoured_fields
from agentc.diagnostics.diagnostic import uses_of
from agentc.diagnostics.suggest import listed
from agentc.ir.module import Module, Resource, Stage, algorithm_of, stage_span
from agentc.kinds import kind_named
from agentc.kinds.table import MODEL_SOURCES, REWORKERS
from agentc.passes.lowering.leases import ResourceAttempt, attempt_resource
from agentc.passes.lowering.module_context import ModuleContext
from agentc.passes.lowering.trial import LoweringTrial, attempt_lowering
from agentc.passes.unit import PassContext
from agentc.source.files import is_folder, nearest_file
from agentc.text import counted


def report_stage(
    stage: Stage, attempt: LoweringTrial, lowering: ModuleContext, context: PassContext
) -> None:
    """One error for each setting of a stage that its backend does not honour, and a warning for
    each input that it leaves aside."""
    chosen = attempt.backend
    if not attempt.failure:
        _report_untaken(stage, attempt, context)
    if attempt.honours_all:
        return
    if attempt.failure:
        _report_failure(stage, chosen, attempt.failure, context)
    others = _on_other_backends(stage, chosen, lowering, context)
    for path in attempt.ignored:
        able = [other.backend.id for other in others if other.honours(path)]
        _report_ignored(stage, path, chosen, able, attempt.reasons.get(path), context)
    for use in attempt.unused_resources:
        context.sink.error(
            "AGC606",
            f"{chosen.id} uses no {use}, but `{stage.id}` names one",
            stage_span(stage, use),
            notes=_able([other.backend.id for other in others if other.honours(use)]),
            fix=f"remove `{use}`",
            steps=stage.origin.steps,
        )
    for refusal in attempt.refusals:
        able = [other.backend.id for other in others if other.honours(refusal.path)]
        able += [
            backend.id
            for backend in _peers(stage, refusal, context)
            if refusal.capability in backend.capabilities and backend.id != chosen.id
        ]
        _report_refusal(stage, refusal, chosen, sorted(set(able)), context)


def _report_untaken(stage: Stage, attempt: LoweringTrial, context: PassContext) -> None:
    """A warning where the spec itself names the input. One that a template wires is none of its
    author's doing: settings beside `use` may make it idle, and cannot take it out."""
    refused = {refusal.path for refusal in attempt.refusals}
    for role in attempt.unused_inputs:
        if role in refused or uses_of(stage_span(stage, role)):
            continue
        reason = attempt.reasons.get(role)
        context.sink.warning(
            "AGC606",
            f"the input `{role}` of `{stage.id}` has no effect: "
            + (reason or f"{attempt.backend.id} does not use it here"),
            stage_span(stage, role),
            fix=f"remove `{role}`",
            steps=stage.origin.steps,
        )


def report_defaults(
    attempts: Sequence[tuple[Stage, LoweringTrial]],
    lowering: ModuleContext,
    context: PassContext,
    *,
    whole: bool,
) -> None:
    """Say where a value under `defaults:` is without effect.

    It is written for every stage that has such a setting, so one that has no use for it is no
    error, unless no stage has (which is not known where the module is not `whole`). A backend that
    can never read it is worth a warning: the author may count on it. Seeds are not: what draws
    nothing needs none.
    """
    taken = {path for _, attempt in attempts for path in attempt.used_defaults}
    for stage, attempt in attempts:
        for path in attempt.ignored_defaults:
            chosen = attempt.backend
            if path not in taken and whole:
                others = _on_other_backends(stage, chosen, lowering, context)
                able = [other.backend.id for other in others if other.honours(path)]
                # A model from somewhere else is another model.
                remedies = None if stage.kind in MODEL_SOURCES else able
                _report_ignored(stage, path, chosen, remedies, attempt.reasons.get(path), context)
            elif path != "seed" and path.split(".")[0] not in honoured_fields(chosen):
                context.sink.warning(
                    "AGC608",
                    f"the default `{path}` has no effect on `{stage.id}`: {chosen.id} never "
                    "reads it",
                    stage_span(stage, path),
                    fix=f"set `{path}` in the stages that it is meant for",
                    steps=stage.origin.steps,
                )


def report_resources(module: Module, lowering: ModuleContext, context: PassContext) -> None:
    """The same for every environment and server of the module."""
    for section, entries in (
        ("environment", module.environments),
        ("server", module.servers),
    ):
        for name, entry in entries.items():
            attempt = lowering.resource(section, name)
            if attempt is not None:
                _report_resource(entry, attempt, context)


def _on_other_backends(
    stage: Stage, chosen: Backend, lowering: ModuleContext, context: PassContext
) -> list[LoweringTrial]:
    """The stage, really lowered on every other backend of its kind that takes its inputs."""
    given = [role for role, producers in stage.inputs.items() if producers]
    return [
        attempt_lowering(stage, backend, lowering)
        for backend in context.table.implementing(stage.kind, algorithm_of(stage.fields))
        if backend.id != chosen.id and all(map(backend.takes, given))
    ]


def _report_resource(entry: Resource, attempt: ResourceAttempt, context: PassContext) -> None:
    chosen = attempt.backend
    if attempt.failure:
        _report_failure(entry, chosen, attempt.failure, context)
    if isinstance(chosen, EnvironmentBackend) and not chosen.available:
        context.sink.warning(
            "AGC607",
            f"{chosen.id} has no server yet: this experiment checks and plans, but cannot run",
            stage_span(entry, "backend"),
        )
    lost = [*attempt.ignored, *(refusal.path for refusal in attempt.refusals)]
    able: dict[str, list[str]] = {path: [] for path in lost}
    for other in context.table.servers() if lost and isinstance(chosen, ServerBackend) else ():
        if other.id == chosen.id:
            continue
        tried = attempt_resource(replace(entry, backend=other.id), context.table)
        if tried is None or tried.failure:
            continue
        ignored = {*tried.ignored, *(refusal.path for refusal in tried.refusals)}
        for path in lost:
            if not any(path == each or path.startswith(f"{each}.") for each in ignored):
                able[path].append(other.id)
    for path in attempt.ignored:
        _report_ignored(entry, path, chosen, able[path], attempt.reasons.get(path), context)
    for refusal in attempt.refusals:
        _report_refusal(entry, refusal, chosen, able[refusal.path], context)


def _report_ignored(
    entry: Stage | Resource,
    path: str,
    chosen: Backend,
    able: list[str] | None,
    reason: str | None,
    context: PassContext,
) -> None:
    """Without `able`, another backend is no remedy."""
    fix = f"remove `{path}`"
    context.sink.error(
        "AGC602",
        f"`{path}` has no effect: {reason or f'{chosen.id} does not read it here'}",
        stage_span(entry, path),
        # Where a reason lies in other settings, another backend is no remedy.
        notes=() if able is None or (reason and not able) else _able(able),
        fix=f"use {able[0]}, or {fix}" if able else fix,
        steps=entry.origin.steps,
    )


def _report_refusal(
    entry: Stage | Resource,
    refusal: Refusal,
    chosen: Backend,
    able: list[str],
    context: PassContext,
) -> None:
    span = stage_span(entry, refusal.path)
    named = refusal.reason.startswith(chosen.id)
    message = refusal.reason if named else f"{chosen.id}: {refusal.reason}"
    # The same one may come from another cell of a sweep.
    if context.sink.has_error_at(span, besides=message):
        return  # an earlier pass has found the same fault
    # For a setting that is missing, it is no help that others do without.
    able = able if refusal.path in entry.spans and refusal.missing is None else []
    notes = [f"{listed(able)} {'support' if len(able) > 1 else 'supports'} it"] if able else []
    fix = refusal.fix
    if refusal.missing is not None:
        if is_folder(refusal.missing, context.boundary):
            message = f"{message}: it is a folder"
        near = nearest_file(refusal.missing, context.boundary)
        fix = f"did you mean `{near}`?" if near else fix
    context.sink.error(
        "AGC603",
        message,
        span,
        notes=notes,
        fix=fix,
        steps=entry.origin.steps,
    )


def _report_failure(
    entry: Stage | Resource, chosen: Backend, failure: str, context: PassContext
) -> None:
    context.sink.error(
        "AGC605",
        f"{chosen.id} failed to lower this ({failure})",
        entry.origin.span,
        notes=("this is a bug of the backend; please report it to its authors",),
        steps=entry.origin.steps,
    )


def _able(able: list[str]) -> tuple[str, ...]:
    if not able:
        return ("no other installed backend of its kind would honour it here",)
    return (f"{listed(able)} would honour it",)


def _peers(stage: Stage, refusal: Refusal, context: PassContext) -> tuple[Backend, ...]:
    """The backends among which one may have the capability that a refusal asks for."""
    match refusal.path.split(".")[0]:
        case "server":
            return context.table.servers()
        case "environment":
            return context.table.environments()
        case _:
            return context.table.stage_backends(stage.kind)


# Rows of a file whose replies are marked as not trained, and trainings that would train them.

_SETTING = "loss_on"


def report_marked_rows(
    attempts: Sequence[tuple[Stage, LoweringTrial]], module: Module, context: PassContext
) -> None:
    """AGC693 where a training that sets no `loss_on` takes rows with marks, directly or reworked.
    Lowering counts marks in local files (`marked` of `JobDraft.expected`)."""
    marked = {
        stage.id: count
        for stage, attempt in attempts
        for draft in attempt.drafts
        if isinstance(count := draft.expected.get("marked"), int)
    }
    for stage, _ in attempts if marked else ():
        kind = kind_named(stage.kind)
        declared = next((f for f in kind.fields if f.name == _SETTING), None) if kind else None
        if declared is None or _SETTING in stage.fields:
            continue
        for source in _sources(stage, module, marked):
            context.sink.error(
                "AGC693",
                f"{counted(marked[source], 'reply', 'replies')} of `{source}` "
                f"{'is' if marked[source] == 1 else 'are'} marked as not trained, and `{stage.id}` "
                "would train them",
                stage_span(stage, "data"),
                notes=(f"`{stage.id}`: `{_SETTING}` is `{declared.default}` by default",),
                fix=f"set `{_SETTING}: marked` to leave them out, or `{_SETTING}: "
                f"{declared.default}` to train them all the same",
                steps=stage.origin.steps,
            )


def _sources(stage: Stage, module: Module, marked: Mapping[str, int]) -> Iterator[str]:
    """The stages with marks that the data of a stage come from."""
    waiting, seen = list(stage.inputs.get("data", ())), set[str]()
    while waiting:
        name = waiting.pop(0)
        found = module.stages.get(name)
        if found is None or name in seen:
            continue
        seen.add(name)
        if name in marked:
            yield name
        for role in REWORKERS.get(found.kind, ()):
            waiting.extend(found.inputs.get(role, ()))
