"""choose_backends: settle `backend: auto`, and remember why.

Requires: edges checked.
Ensures: every stage names an installed backend of its kind, and the unit holds a Choice for each
stage; a stage for which none could be found keeps its name and has been reported.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.backend_api import StageBackend
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import Bodies, Body, Stage, algorithm_of, stage_span
from agentc.kinds import kind_named
from agentc.passes.lowering.module_context import ModuleContext
from agentc.passes.lowering.trial import LoweringTrial, attempt_lowering
from agentc.passes.unit import BackendChoice, PassContext, Unit

AUTO = "auto"


def choose_backends(unit: Unit, context: PassContext) -> Unit:
    """Choose by lowering on every candidate: one that honours everything the stage sets wins,
    the kind's default before the others."""
    module = unit.module
    if module is None:
        return unit
    # A trial must not note what only a rejected candidate asks for.
    trial = context.references.copy()
    lowering = ModuleContext(module, context.table, context.boundary, trial)
    stages: dict[str, Stage] = {}
    choices: list[BackendChoice] = []
    known: dict[Body, tuple[BackendChoice, Body]] = {}
    bodies = Bodies()
    for name, stage in module.stages.items():
        if stage.body in known:
            choice, body = known[stage.body]
        else:
            made, of_body = _choose(stage, lowering, context)
            if made is None:
                stages[name] = stage
                continue
            choice, body = made, bodies.of(replace(stage.body, backend=made.backend))
            if of_body:
                known[stage.body] = made, body
        choices.append(choice if choice.stage == name else replace(choice, stage=name))
        stages[name] = stage if stage.body is body else replace(stage, body=body)
    return replace(unit, module=replace(module, stages=stages), choices=tuple(choices))


def _choose(
    stage: Stage, lowering: ModuleContext, context: PassContext
) -> tuple[BackendChoice | None, bool]:
    """The choice, and whether it holds for every stage of the same body."""
    candidates = _candidates(stage, context)
    if stage.backend != AUTO:
        return _named(stage, candidates, context), True
    if not candidates:
        context.sink.error(
            "AGC604",
            f"no installed backend does `{stage.kind}`",
            stage.origin.span,
            fix="install a distribution that provides one",
            steps=stage.origin.steps,
        )
        return None, False
    if len(candidates) == 1:
        algorithm = algorithm_of(stage.fields)
        reason = "the only installed backend of its kind"
        if algorithm is not None:
            reason = f"the only installed backend for `algorithm: {algorithm}`"
        return BackendChoice(stage=stage.id, backend=candidates[0].id, reason=reason), True
    kind = kind_named(stage.kind)
    default = None if kind is None else kind.default_backend
    ordered = sorted(candidates, key=lambda backend: (backend.id != default, backend.id))
    attempts = [attempt_lowering(stage, backend, lowering) for backend in ordered]
    best = min(attempts, key=_complaints)  # the first of the best, so the default wins ties
    choice = BackendChoice(
        stage=stage.id,
        backend=best.backend.id,
        reason=_reason(best, default),
        rejected=tuple(
            (attempt.backend.id, _why_not(attempt)) for attempt in attempts if attempt is not best
        ),
    )
    return choice, not any(attempt.named for attempt in attempts)


def _candidates(stage: Stage, context: PassContext) -> tuple[StageBackend, ...]:
    """The backends that do the stage's work: those that implement its algorithm, or that of the
    kind's default where it names none."""
    table, kind = context.table, kind_named(stage.kind)
    if kind is None or stage.backend != AUTO:
        return table.stage_backends(stage.kind)
    algorithm = algorithm_of(stage.fields)
    default = table.backends.get(kind.default_backend or "")
    if algorithm is None and isinstance(default, StageBackend) and default.algorithms:
        algorithm = default.algorithms[0]
    return table.implementing(stage.kind, algorithm)


def _named(
    stage: Stage, candidates: tuple[StageBackend, ...], context: PassContext
) -> BackendChoice | None:
    found = context.table.find(stage.backend, stage.kind)
    if isinstance(found, StageBackend):
        return BackendChoice(stage=stage.id, backend=found.id, reason="the spec names it")
    names = [backend.id for backend in candidates]
    context.sink.error(
        "AGC601",
        f"no installed backend `{stage.backend}` does `{stage.kind}`",
        stage_span(stage, "backend"),
        expected=listed([*names, AUTO]),
        fix=did_you_mean(stage.backend, names),
        steps=stage.origin.steps,
    )
    return None


def _complaints(attempt: LoweringTrial) -> tuple[bool, int, int]:
    lost = len(attempt.ignored) + len(attempt.unused_resources) + len(attempt.refusals)
    return (
        attempt.failure is not None,
        lost,
        len(attempt.ignored_defaults) + len(attempt.unused_inputs),
    )


def _reason(best: LoweringTrial, default: str | None) -> str:
    if not best.honours_all:
        return "no backend honours everything that the stage sets; this one comes nearest"
    if best.backend.id == default:
        return "default for this kind; supports all settings used"
    return "it honours everything that the stage sets"


def _why_not(attempt: LoweringTrial) -> str:
    if attempt.failure:
        return f"it fails: {attempt.failure}"
    reasons = [refusal.reason for refusal in attempt.refusals]
    ignored = [
        *attempt.ignored,
        *attempt.ignored_defaults,
        *attempt.unused_resources,
        *attempt.unused_inputs,
    ]
    if ignored:
        reasons.append(f"it would ignore {listed(ignored)}")
    return "; ".join(reasons) or "also supported"
