"""The section `budget:` of the IR. Part of `resolve_names`."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.diagnostics.sink import Sink
from agentc.front.expressions import Evaluator
from agentc.ir.module import Budget, Stage
from agentc.kinds.field import Json
from agentc.schema import language
from agentc.schema.coerce import Coercion
from agentc.schema.keys import Place, as_mapping
from agentc.source.tree import Unknown
from agentc.syntax.nodes import Spec

_AMOUNTS = ("wall_hours", "gpu_hours", "tokens", "disk_gb")


def resolve_budget(
    spec: Spec,
    params: Mapping[str, Json],
    stages: Mapping[str, Stage],
    evaluator: Evaluator,
    sink: Sink,
) -> Budget | None:
    """The budget, or None when there is none or it is broken."""
    if spec.budget is None:
        return None
    computed = evaluator.evaluate(spec.budget, params)
    if isinstance(computed, Unknown):
        return None
    example = "a mapping such as `{wall_hours: 2, tokens: 1e9}`"
    mapping = as_mapping(computed, Place("budget", "`budget`"), sink, example)
    coercion = Coercion(sink)
    given = None if mapping is None else coercion.group(mapping, language.BUDGET_FIELDS, "budget")
    if not isinstance(given, dict):
        return None
    amounts = {name: _amount(given.get(name)) for name in _AMOUNTS}
    budget = Budget(
        **amounts,
        quantile=str(given.get("quantile") or "p50"),
        gpu=str(given.get("gpu") or "a100"),
        spans={path.removeprefix("budget."): span for path, span in coercion.spans.items()},
    )
    if not budget.limits():
        listed = ", ".join(f"`{name}`" for name in _AMOUNTS)
        sink.warning(
            "AGC731", "the budget bounds nothing", spec.budget.span, fix=f"give one of {listed}"
        )
    if budget.gpu_hours and stages and not sink.has_errors and not _asks_for_gpus(stages):
        sink.warning(
            "AGC732",
            "the budget bounds GPU-hours, and no stage asks for a GPU",
            budget.spans.get("gpu_hours"),
            fix="bound `wall_hours`, or give stages GPUs with `placement: {gpus: 1}`",
        )
    return budget


def _amount(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _asks_for_gpus(stages: Mapping[str, Stage]) -> bool:
    asked = (stage.placement.get("gpus") for stage in stages.values())
    return any(value is not None and bool(value.json) for value in asked)
