"""check_settings: rules between settings that no single field can state.

Requires: backends chosen, edges checked.
Ensures: batches divide over processes, splits exist, lengths fit the model's context; what is
legal but doubtful has been warned about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from agentc.backend_api import BackendTable, EnvironmentBackend, OptionView
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import Module, Stage
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.passes.context import PassContext
from agentc.passes.lowering import stage_values
from agentc.passes.order import ordered
from agentc.passes.place import stage_span
from agentc.passes.unit import Unit

_Tasks: TypeAlias = tuple[str | None, Json]
"""An environment entry and a split of it."""
_Models: TypeAlias = Mapping[str, Stage]


def check_settings(unit: Unit, context: PassContext) -> Unit:
    """Report every broken rule; changes nothing."""
    module = unit.module
    if module is None:
        return unit
    sources, models = _sources_before(module), _models_behind(module)
    for stage in module.stages.values():
        settings = _settings(stage)
        match stage.kind:
            case "sft" | "dpo":
                _check_batch(stage, settings, context)
                _check_length(stage, settings, "max_length", models, context)
            case "expert" | "rollout" | "evaluate":
                _check_episodes(stage, settings, module, models, context)
            case "compare":
                _check_same_tasks(stage, module, context)
            case _:
                pass
        if stage.kind == "evaluate":
            _check_unseen(stage, settings, sources[stage.id], context)
    return unit


def _settings(stage: Stage) -> OptionView:
    kind = kind_named(stage.kind)
    return OptionView(table=() if kind is None else kind.fields, values=stage_values(stage))


def _number(settings: OptionView, path: str) -> float | None:
    value = settings.get(path)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _integer(settings: OptionView, path: str) -> int | None:
    value = settings.get(path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _check_batch(stage: Stage, settings: OptionView, context: PassContext) -> None:
    whole, processes, micro = (
        _integer(settings, name) for name in ("global_batch", "processes", "micro_batch")
    )
    if whole is None or not processes:
        return
    if whole % processes:
        shares, path = f"{processes} processes", "processes"
    elif micro and whole // processes % micro:
        shares, path = f"{processes} x micro_batch {micro}", "micro_batch"
    else:
        return
    once = processes * (micro or 1)
    nearest = [str(n) for n in (whole // once * once, whole // once * once + once) if n > 0]
    context.sink.error(
        "AGC503",
        f"a global_batch of {whole} cannot be made of {shares}",
        stage_span(stage, path),
        expected="global_batch = processes x micro_batch x a whole number of accumulation steps",
        fix=f"with these, global_batch may be {' or '.join(nearest)}",
        steps=stage.origin.steps,
    )


def _check_length(
    stage: Stage, settings: OptionView, path: str, models: _Models, context: PassContext
) -> None:
    model = models.get(stage.id)
    wanted = _number(settings, path)
    if model is None or wanted is None:
        return
    has = _number(_settings(model), "context")
    if has is not None and wanted > has:
        context.sink.error(
            "AGC508",
            f"`{path}` is {wanted}, but `{model.id}` has a context of {has} tokens",
            stage_span(stage, path),
            fix=f"lower `{path}`, or give `{model.id}` a larger `context`",
            steps=stage.origin.steps,
        )


def _check_episodes(
    stage: Stage, settings: OptionView, module: Module, models: _Models, context: PassContext
) -> None:
    environment = _environment(stage, module, context.table)
    if environment is not None:
        _check_split(stage, settings, environment, context)
        turns = _number(settings, "max_turns")
        if turns is not None and turns > environment.max_turns and stage.kind != "expert":
            context.sink.warning(
                "AGC506",
                f"{environment.id} ends episodes after {environment.max_turns} turns, "
                f"so `max_turns: {turns}` is never reached",
                stage_span(stage, "max_turns"),
                steps=stage.origin.steps,
            )
    if stage.kind == "expert":
        return
    _check_length(stage, settings, "decode.max_tokens", models, context)
    attempts = _number(settings, "attempts") or 1
    # An environment with prompt seeds shows each attempt another prompt, unless told not to.
    one_prompt = stage.options.get("prompt_per_attempt")
    varied = environment is not None and "seed" in environment.capabilities
    if varied and one_prompt is not None and one_prompt.json is False:
        varied = False
    if attempts > 1 and not varied and _number(settings, "decode.temperature") == 0:
        context.sink.warning(
            "AGC505",
            f"{attempts} greedy attempts at one task give the same episode {attempts} times",
            stage_span(stage, "attempts"),
            fix="set decode.temperature above 0, or attempts to 1",
            steps=stage.origin.steps,
        )


def _check_split(
    stage: Stage, settings: OptionView, environment: EnvironmentBackend, context: PassContext
) -> None:
    split = settings.get("split")
    if not isinstance(split, str) or not environment.splits or split in environment.splits:
        return
    context.sink.error(
        "AGC504",
        f"{environment.id} has no split `{split}`",
        stage_span(stage, "split"),
        expected=listed(environment.splits),
        fix=did_you_mean(split, environment.splits),
        steps=stage.origin.steps,
    )


def _check_same_tasks(stage: Stage, module: Module, context: PassContext) -> None:
    compared = [*stage.inputs.get("of", ()), *stage.inputs.get("baseline", ())]
    seen: dict[tuple[str | None, str], str] = {}
    for name in compared:
        evaluation = module.stages.get(name)
        if evaluation is None or evaluation.kind != "evaluate":
            continue
        split = _settings(evaluation).get("split")
        seen.setdefault((evaluation.uses.get("environment"), str(split)), name)
    if len(seen) > 1:
        shown = [f"`{name}`: split {split} of {env}" for (env, split), name in seen.items()]
        context.sink.warning(
            "AGC509",
            "these evaluations are of different tasks, so their differences are not paired",
            stage_span(stage, "of"),
            notes=shown,
            steps=stage.origin.steps,
        )


def _check_unseen(
    stage: Stage, settings: OptionView, sources: Mapping[_Tasks, str], context: PassContext
) -> None:
    source = sources.get((stage.uses.get("environment"), settings.get("split")))
    if source is not None:
        context.sink.warning(
            "AGC507",
            f"the policy was trained on the split it is evaluated on (`{source}` used it)",
            stage_span(stage, "split"),
            steps=stage.origin.steps,
        )


def _sources_before(module: Module) -> dict[str, dict[_Tasks, str]]:
    """For each stage the tasks that its ancestors took trajectories from, each with the first
    stage that did. One walk in topological order: rounds may be thousands."""
    found: dict[str, dict[_Tasks, str]] = {}
    for stage in ordered(module):
        mine: dict[_Tasks, str] = {}
        for parent in dict.fromkeys(name for names in stage.inputs.values() for name in names):
            before = module.stages.get(parent)
            if before is None:
                continue
            for tasks, source in found.get(parent, {}).items():
                mine.setdefault(tasks, source)
            if before.kind in ("expert", "rollout"):
                tasks = (before.uses.get("environment"), _settings(before).get("split"))
                mine.setdefault(tasks, parent)
        found[stage.id] = mine
    return found


def _environment(stage: Stage, module: Module, table: BackendTable) -> EnvironmentBackend | None:
    entry = module.environments.get(stage.uses.get("environment", ""))
    found = None if entry is None else table.find(entry.backend, "env")
    return found if isinstance(found, EnvironmentBackend) else None


def _models_behind(module: Module) -> dict[str, Stage]:
    """For each stage with a policy the model that it descends from, where this spec makes that
    model from nothing."""
    found: dict[str, Stage] = {}
    for stage in ordered(module):
        parents = stage.inputs.get("policy") or stage.inputs.get("model") or ()
        if stage.kind == "model" and stage.backend == "model.scratch":
            found[stage.id] = stage
        elif parents and parents[0] in found:
            found[stage.id] = found[parents[0]]
    return found
