"""resolve_names: bind names, compute and type values; syntax becomes the IR.

Requires: a structured spec, its params, and unrolled rounds.
Ensures: a closed module: every edge of a stage in it leads to a stage in it. A stage with an error,
and what depends on it, is left out, so later passes can go on and find further errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from agentc.backend_api import BackendTable
from agentc.diagnostics.diagnostic import Origin
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.bind_stage import StageBinder
from agentc.front.claim_reading import ClaimReading
from agentc.front.expand_repeat import Rounds
from agentc.front.expressions import MISSING, Evaluator
from agentc.front.resolve_claims import resolve_claims
from agentc.front.resolve_entries import (
    resolve_discrepancies,
    resolve_paper,
    resolve_prompts,
    resolve_resources,
    resolve_text,
)
from agentc.front.resolve_search import resolve_until
from agentc.front.resolve_sections import resolve_budget, resolve_software, resolve_track
from agentc.front.stage_references import InputResolver, ReferenceResolver, find_cycle
from agentc.front.stage_values import BoundValues, Defaults
from agentc.ir.module import Module, Resource, Stage
from agentc.kinds.field import Json
from agentc.schema import language
from agentc.source.tree import Scalar
from agentc.syntax.nodes import RepeatDecl, Spec, StageDecl

ENOUGH_STAGES = 2_000
"""Where there are errors, later rounds and cells are looked at up to so many stages: they have the
same errors again, and every stage is seen in its first round."""


def resolve_names(
    spec: Spec,
    params: Mapping[str, Json],
    rounds: Rounds,
    table: BackendTable,
    evaluator: Evaluator,
    sink: Sink,
    values: BoundValues,
) -> Module:
    """The module; partial when the sink has errors. `values` are those of the cells before."""
    name_field, description_field = language.TOP_LEVEL_FIELDS
    name = resolve_text(spec.name, name_field, params, evaluator, sink)
    description = resolve_text(spec.description, description_field, params, evaluator, sink)
    environments = resolve_resources("environment", spec, params, table, evaluator, sink)
    servers = resolve_resources("server", spec, params, table, evaluator, sink)
    _check_simulator_servers(environments, spec, sink)
    prompts = resolve_prompts(spec, params, evaluator, sink)
    defaults = Defaults(spec)
    references = ReferenceResolver(spec, rounds)
    binder = StageBinder(
        spec=spec,
        rounds=rounds,
        meant=InputResolver(spec=spec, references=references, evaluator=evaluator, sink=sink),
        defaults=defaults,
        table=table,
        evaluator=evaluator,
        sink=sink,
        values=values,
        environments=environments,
    )
    stages: dict[str, Stage] = {}
    for number, unrolled in enumerate(rounds.stages):
        if sink.is_full:
            break
        if number >= ENOUGH_STAGES and (unrolled.round or 1) > 1 and sink.has_errors:
            sink.cut_short()
            continue
        stage = binder.bind(unrolled)
        if stage is not None:
            stages[stage.id] = stage
    if not spec.models and not spec.stages and not sink.has_errors:
        sink.error(
            "AGC211",
            "the spec has neither stages nor models",
            spec.span,
            fix="add `models:` and `stages:`; specs/quickstart.yaml is an example",
        )
    broken = _has_broken_stages(spec)
    if not broken:
        defaults.report_unused(sink)
    _report_cycle(stages, sink)
    paper = resolve_paper(spec, params, evaluator, sink)
    discrepancies = resolve_discrepancies(spec, params, evaluator, sink)
    reading = ClaimReading(
        rounds=rounds,
        references=references,
        stages=stages,
        environments=environments,
        table=table,
        params=params,
        evaluator=evaluator,
        sink=sink,
    )
    claims = resolve_claims(spec, reading)
    budget = resolve_budget(spec, params, stages, evaluator, sink)
    closed = _closed(stages)
    return Module(
        name=name or "",
        stages=closed,
        whole=not broken and len(closed) == len(rounds.stages),
        environments=environments,
        servers=servers,
        prompts=prompts,
        params={key: value for key, value in params.items() if value is not MISSING},
        description=description,
        paper=paper,
        discrepancies=discrepancies,
        claims=claims,
        budget=budget,
        track=resolve_track(spec, params, evaluator, sink),
        stopping=resolve_until(spec, reading),
        software=resolve_software(spec, sink),
        origin=Origin(spec.span),
    )


def _check_simulator_servers(environments: Mapping[str, Resource], spec: Spec, sink: Sink) -> None:
    """Report servers that an environment asks and no entry declares."""
    for entry in environments.values():
        for role, asked in entry.simulators.items():
            name = entry.simulator_server(role)
            if name is None or name in spec.servers or "servers" in spec.broken:
                continue
            span = entry.spans.get(f"{role}.server", asked.span or entry.origin.span)
            known = listed(spec.servers)
            sink.error(
                "AGC402",
                f"no server `{name}`",
                span,
                expected=f"one of {known}" if spec.servers else "an entry of `servers:`",
                fix=did_you_mean(name, spec.servers),
            )


def _closed(stages: Mapping[str, Stage]) -> dict[str, Stage]:
    """Without stages that depend on one that is not there, or on themselves."""
    kept = dict(stages)
    while True:
        lost = [
            name
            for name, stage in kept.items()
            if any(each not in kept for inputs in stage.inputs.values() for each in inputs)
        ]
        cycle = () if lost else find_cycle(_edges(kept))
        if not lost and not cycle:
            return kept
        for name in (*lost, *cycle):
            del kept[name]


def _edges(stages: Mapping[str, Stage]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(each for inputs in stage.inputs.values() for each in inputs)
        for name, stage in stages.items()
    }


def _report_cycle(stages: Mapping[str, Stage], sink: Sink) -> None:
    cycle = find_cycle(_edges(stages))
    if not cycle:
        return
    first, second = cycle[0], cycle[1 % len(cycle)]
    stage = stages[first]
    span = stage.origin.span
    for role, inputs in stage.inputs.items():
        if second in inputs:
            span = stage.spans.get(f"{role}.{inputs.index(second)}", span)
    shown = " -> ".join(f"`{name}`" for name in (*cycle, first))
    if len(cycle) == 1:
        role = next(role for role, inputs in stage.inputs.items() if first in inputs)
        sink.error(
            "AGC405",
            f"`{first}` takes its own output as `{role}`",
            span,
            fix=f"name the stage whose output `{first}` works on",
            steps=stage.origin.steps,
        )
        return
    message = f"the stages depend on each other in a cycle: {shown}"
    sink.error("AGC405", message, span, notes=("an arrow means `needs`",), steps=stage.origin.steps)


def _has_broken_stages(spec: Spec) -> bool:
    if spec.broken & {"stages", "models"}:
        return True
    declared = [*spec.models.values(), *spec.stages.values()]
    if any(isinstance(each, RepeatDecl) and each.broken for each in declared):
        return True
    inner = [s for each in declared if isinstance(each, RepeatDecl) for s in each.stages.values()]
    return any(isinstance(each, StageDecl) and each.kind is None for each in [*declared, *inner])


def warn_unused(spec: Spec, modules: Sequence[Module], sink: Sink) -> None:
    """Warn of models, environments, servers and prompts that no stage of any cell uses, nor any
    environment that one uses."""
    bodies = {stage.body for module in modules for stage in module.stages.values()}
    used = {
        parent
        for module in modules
        for stage in module.stages.values()
        for parent in stage.parents()
    }
    for name, model in spec.models.items():
        if name not in used and spec.stages:
            sink.unused("AGC411", f"no stage uses the model `{name}`", model.name.span)
    named = {use for body in bodies for use in body.uses.items()}
    named |= {
        ("server", server) for module in modules for server in _simulator_servers(module, named)
    }
    declared: tuple[tuple[str, Mapping[str, Scalar]], ...] = (
        ("environment", {name: entry.name for name, entry in spec.environments.items()}),
        ("server", {name: entry.name for name, entry in spec.servers.items()}),
        ("prompt", {name: entry.name for name, entry in spec.prompts.items()}),
    )
    for use, entries in declared:
        for name, written in entries.items():
            if (use, name) not in named:
                sink.unused("AGC411", f"no stage uses the {use} `{name}`", written.span)


def _simulator_servers(module: Module, named: Collection[tuple[str, str]]) -> Iterator[str]:
    """The servers that the named environments of a module ask."""
    for entry in module.environments.values():
        if ("environment", entry.name) in named:
            servers = (entry.simulator_server(role) for role in entry.simulators)
            yield from (server for server in servers if server is not None)
