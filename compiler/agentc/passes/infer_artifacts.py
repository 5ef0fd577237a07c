"""infer_artifacts: give every edge its artifact type, and end the experiment with the verdicts on
its claims (if it has some) and a report.

Requires: a module with names bound and without circles.
Ensures: every required role of every stage is filled, each edge carries a type that its role
accepts; a `verdicts` stage reads the evaluations that claims are about, and the last stage is a
`report` that depends on all others (each where a backend for it is installed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import listed
from agentc.ir.module import Body, Module, Stage, product_of, stage_span
from agentc.kinds import KINDS, REPORT_KIND, VERDICTS_KIND, kind_named
from agentc.kinds.artifacts import PREFERENCE_PAIRS, ArtifactType
from agentc.kinds.field import Role
from agentc.kinds.table import MODEL_MAKERS
from agentc.passes.unit import PassContext, Unit

_MOST_TYPES = 5
"""So many that an input accepts are named in a message."""
_MOST_STEPS = 2


def infer_artifacts(unit: Unit, context: PassContext) -> Unit:
    """Check the edges; add the verdicts and the report."""
    module = unit.module
    if module is None:
        return unit
    for stage in module.stages.values():
        _check_edges(stage, module, context)
    if any(map(_gathers, _inputs_of_all(module))):
        return unit  # a circle, once the stage that it reads gathers all others; reported above
    if module.claims and context.table.stage_backends(VERDICTS_KIND):
        module = _with_verdicts(module)
    unit = replace(unit, module=module)
    if not context.table.stage_backends(REPORT_KIND):
        return unit
    return replace(unit, module=_with_report(module, context.sink))


def _check_edges(stage: Stage, module: Module, context: PassContext) -> None:
    kind = kind_named(stage.kind)
    if kind is None or kind.gathers:
        return
    for role in (
        *kind.roles_of(stage.inputs),
        *_simulator_inputs(stage, module, context),
    ):
        producers = stage.inputs.get(role.name, ())
        if not producers and not role.optional:
            context.sink.error(
                "AGC502",
                f"`{stage.id}` has no `{role.name}`",
                stage.origin.span,
                expected=f"{_wanted(role)}: {role.doc}",
                notes=_offer(role, module),
                steps=stage.origin.steps,
            )
        for producer in producers:
            made = _product(producer, module)
            if made is not None and not made.fits(*role.accepts):
                context.sink.error(
                    "AGC501",
                    f"`{role.name}` of a stage of kind {stage.kind} takes {_types(role)}, "
                    f"but `{producer}` makes {made.name}",
                    stage_span(stage, role.name),
                    expected=_wanted(role),
                    notes=_offer(role, module),
                    fix=made.meant_for
                    or _as_preferences(producer, role, module)
                    or _between(made, producer, role),
                    steps=stage.origin.steps,
                )


def without_misfits(module: Module, context: PassContext) -> Module:
    """The module without the edges that `infer_artifacts` has refused; itself where there are
    none."""
    stages = dict(module.stages)
    changed = False
    for stage in module.stages.values():
        kind = kind_named(stage.kind)
        if kind is None or kind.gathers:
            continue
        refused = {
            (role.name, producer)
            for role in (
                *kind.roles_of(stage.inputs),
                *_simulator_inputs(stage, module, context),
            )
            for producer in stage.inputs.get(role.name, ())
            if (made := _product(producer, module)) is not None and not made.fits(*role.accepts)
        }
        if refused:
            inputs = {
                role: tuple(name for name in names if (role, name) not in refused)
                for role, names in stage.inputs.items()
            }
            kept = {role: names for role, names in inputs.items() if names}
            stages[stage.id] = stage.with_inputs(kept)
            changed = True
    return replace(module, stages=stages) if changed else module


def _simulator_inputs(stage: Stage, module: Module, context: PassContext) -> Iterator[Role]:
    """The inputs that a stage has because its environment asks a model server."""
    entry = module.environments.get(stage.uses.get("environment", ""))
    backend = None if entry is None else context.table.backends.get(entry.backend)
    for each in backend.simulators if isinstance(backend, EnvironmentBackend) else ():
        yield Role(name=each.name, accepts=(each.accepts,), doc=each.doc, optional=True)


def _inputs_of_all(module: Module) -> Iterator[Stage]:
    for stage in module.stages.values():
        for names in stage.inputs.values():
            yield from (module.stages[name] for name in names if name in module.stages)


def _gathers(stage: Stage) -> bool:
    kind = kind_named(stage.kind)
    return kind is not None and kind.gathers


def _with_verdicts(module: Module) -> Module:
    """The verdicts stage reads each evaluation that a claim is about, once."""
    others = {name: stage for name, stage in module.stages.items() if stage.kind != VERDICTS_KIND}
    verdicts = _last(
        VERDICTS_KIND, "claims", "What the paper says, compared with the results.", module
    )
    measured = dict.fromkeys(name for claim in module.claims for name in claim.stages)
    verdicts = verdicts.with_inputs({"of": tuple(name for name in measured if name in others)})
    return replace(module, stages={**others, verdicts.id: verdicts})


def _with_report(module: Module, sink: Sink) -> Module:
    """The report reads every stage under the stage's own id as role, so that it knows which is
    which even when the objects were made by another experiment."""
    others = {name: stage for name, stage in module.stages.items() if stage.kind != REPORT_KIND}
    if not others:
        return module
    _warn_of_name(REPORT_KIND, module, sink)
    report = _last(REPORT_KIND, "report", "One page over the whole experiment.", module)
    report = report.with_inputs({name: (name,) for name in others})
    return replace(module, stages={**others, report.id: report})


def _warn_of_name(name: str, module: Module, sink: Sink) -> None:
    """Of a stage of another kind that has the name by which the one made here is known."""
    own = module.stages.get(name)
    if own is not None and not any(stage.kind == name for stage in module.stages.values()):
        sink.warning(
            "AGC413",
            f"the stage `{name}` is of kind {own.kind}; the experiment's own {name} becomes "
            f"`final_{name}`",
            own.origin.span,
            fix="choose another name",
        )


def _last(kind: str, name: str, doc: str, module: Module) -> Stage:
    """The spec's own stage of that kind, or one made here."""
    given = next((stage for stage in module.stages.values() if stage.kind == kind), None)
    return given or Stage(
        id=name if name not in module.stages else f"final_{name}",
        body=Body(kind=kind, backend="auto"),
        inputs={},
        origin=module.origin or next(iter(module.stages.values())).origin,
        doc=doc,
    )


def _product(stage_id: str, module: Module) -> ArtifactType | None:
    stage = module.stages.get(stage_id)
    return None if stage is None else product_of(stage)


def _types(role: Role) -> str:
    names = [accepted.name for accepted in role.accepts]
    shown = names if len(names) <= _MOST_TYPES else [*names[:_MOST_TYPES], "others"]
    return " or ".join(shown)


def _wanted(role: Role) -> str:
    some = "one or more stages that make" if role.many else "a stage that makes"
    return f"{some} {_types(role)}"


def _as_preferences(producer: str, role: Role, module: Module) -> str | None:
    """Help for a data set of conversations where pairs are wanted."""
    kind = kind_named(module.stages[producer].kind)
    if PREFERENCE_PAIRS not in role.accepts or kind is None or kind.product_setting != "format":
        return None
    return f"set `format: preference` in `{producer}` if its records have two sides"


def _between(made: ArtifactType, producer: str, role: Role) -> str | None:
    """Help where stages of some kind make what is wanted of what is given."""
    steps: list[str] = []
    for kind in KINDS:
        if kind.gathers or kind.name in MODEL_MAKERS or not kind.produces.fits(*role.accepts):
            continue
        reads = [f"`{taken.name}`" for taken in kind.roles if made.fits(*taken.accepts)]
        if reads:
            steps.append(f"`{kind.name}` (which reads `{producer}` as {' or '.join(reads)})")
    if not steps:
        return None
    return f"put a stage of kind {' or '.join(steps[:_MOST_STEPS])} between, and name that here"


def _offer(role: Role, module: Module) -> tuple[str, ...]:
    made = {name: _product(name, module) for name in module.stages}
    names = [name for name, one in made.items() if one is not None and one.fits(*role.accepts)]
    if not names:
        return (f"no stage of this spec makes {_types(role)}",)
    return (f"stages that make it: {listed(names)}",)
