"""check_settings: rules between settings that no single field can state.

Requires: backends chosen, edges checked.
Ensures: batches divide over processes, splits exist, lengths fit the model's context; what is
legal but doubtful has been warned about.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import BackendTable, EnvironmentBackend, OptionView
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import Module, Stage
from agentc.kinds import kind_named
from agentc.passes.context import PassContext
from agentc.passes.lowering import stage_values
from agentc.passes.place import stage_span
from agentc.passes.unit import Unit


def check_settings(unit: Unit, context: PassContext) -> Unit:
    """Report every broken rule; changes nothing."""
    module = unit.module
    if module is None:
        return unit
    for stage in module.stages.values():
        settings = _settings(stage)
        match stage.kind:
            case "sft" | "dpo":
                _check_batch(stage, settings, context)
                _check_length(stage, settings, "max_length", module, context)
            case "expert" | "rollout" | "evaluate":
                _check_episodes(stage, settings, module, context)
            case "compare":
                _check_same_tasks(stage, module, context)
            case _:
                pass
        if stage.kind == "evaluate":
            _check_unseen(stage, settings, module, context)
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
    stage: Stage, settings: OptionView, path: str, module: Module, context: PassContext
) -> None:
    model = _scratch_model(stage, module)
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
    stage: Stage, settings: OptionView, module: Module, context: PassContext
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
    _check_length(stage, settings, "decode.max_tokens", module, context)
    attempts = _number(settings, "attempts") or 1
    if attempts > 1 and _number(settings, "decode.temperature") == 0:
        context.sink.warning(
            "AGC505",
            f"{attempts} greedy attempts at one task differ only where their prompts do",
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


def _check_unseen(stage: Stage, settings: OptionView, module: Module, context: PassContext) -> None:
    here = (stage.uses.get("environment"), settings.get("split"))
    for source in _ancestors(stage, module):
        if source.kind not in ("expert", "rollout"):
            continue
        if (source.uses.get("environment"), _settings(source).get("split")) == here:
            context.sink.warning(
                "AGC507",
                f"the policy was trained on the split it is evaluated on (`{source.id}` used it)",
                stage_span(stage, "split"),
                steps=stage.origin.steps,
            )
            return


def _environment(stage: Stage, module: Module, table: BackendTable) -> EnvironmentBackend | None:
    entry = module.environments.get(stage.uses.get("environment", ""))
    found = None if entry is None else table.find(entry.backend, "env")
    return found if isinstance(found, EnvironmentBackend) else None


def _scratch_model(stage: Stage, module: Module) -> Stage | None:
    """The model that the stage's policy descends from, if this spec makes it from nothing."""
    seen: set[str] = set()
    while stage.kind != "model":
        parents = stage.inputs.get("policy") or stage.inputs.get("model") or ()
        if not parents or parents[0] in seen or parents[0] not in module.stages:
            return None
        seen.add(parents[0])
        stage = module.stages[parents[0]]
    return stage if stage.backend == "model.scratch" else None


def _ancestors(stage: Stage, module: Module) -> Iterator[Stage]:
    pending = [name for names in stage.inputs.values() for name in names]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen or name not in module.stages:
            continue
        seen.add(name)
        yield module.stages[name]
        pending += [parent for names in module.stages[name].inputs.values() for parent in names]
