"""`until:` of repeats in the IR, for one cell: the rule, and the stages that it is followed by.

Part of `resolve_names`; `resolve_claims.py` reads metrics and their bounds in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.span import Span
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.claim_reading import ClaimReading, lacking, number_of
from agentc.front.claim_scores import score_bounds, shown
from agentc.front.expand_repeat import is_fixed
from agentc.ir.stopping import StoppingRounds, StoppingRule
from agentc.kinds.field import Json
from agentc.kinds.metric_names import read_metric
from agentc.schema import repeats
from agentc.schema.coerce import Coercion
from agentc.schema.keys import Place, as_mapping
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Unknown
from agentc.syntax.nodes import RepeatDecl, Spec

_EXAMPLE = "a mapping such as `{stage: evaluate, metric: success, reaches: 0.8}`"


def resolve_until(spec: Spec, reading: ClaimReading) -> tuple[StoppingRounds, ...]:
    """The rules that are right, in the order of the repeats; what is wrong with the others is in
    the sink."""
    repeats = (each for each in spec.stages.values() if isinstance(each, RepeatDecl))
    found = (_stopping(each, spec, reading) for each in repeats if each.until is not None)
    return tuple(each for each in found if each is not None)


def _stopping(declared: RepeatDecl, spec: Spec, reading: ClaimReading) -> StoppingRounds | None:
    assert declared.until is not None
    name, sink = declared.name.text, reading.sink
    what, path = f"`until` of repeat `{name}`", f"{name}.until"
    computed = reading.evaluator.evaluate(declared.until, reading.params)
    if isinstance(computed, Unknown):
        return None
    node = as_mapping(computed, Place(path, what), sink, _EXAMPLE)
    coercion, before = Coercion(sink), sink.count
    values = None if node is None else coercion.group(node, repeats.UNTIL_FIELDS, path)
    if node is None or not isinstance(values, dict) or sink.count > before:
        return None  # of a rule with a slip in it nothing else is sure
    stage = str(values.pop("stage"))
    values = {key: value for key, value in values.items() if value is not None}
    rule = StoppingRule.of({"metric": "reward", **values})
    places = {key.removeprefix(f"{path}."): span for key, span in coercion.spans.items()}
    places |= {each.key.text: each.value.span for each in node.entries}
    if not _is_measured(what, stage, rule, declared, spec, places, reading):
        return None
    count, most = reading.rounds.counts.get(name, 1), reading.rounds.most.get(name, 1)
    stopping = StoppingRounds(
        repeat=name,
        rule=rule,
        most=most,
        rounds=tuple(
            tuple(f"{name}.{number}.{each}" for each in declared.stages)
            for number in range(1, count + 1)
        ),
        measures=tuple(f"{name}.{number}.{stage}" for number in range(1, count + 1)),
    )
    complaints = list(_complaints(what, stopping, values, places, node, reading))
    for message, span, fix in complaints:
        sink.error("AGC791", message, span, fix=fix)
    if complaints:
        return None
    if rule.earliest >= most and is_fixed(declared, most):
        sink.warning(
            "AGC793",
            f"{what} ends nothing: it holds after round {rule.earliest} at the earliest,"
            f" and there {'is' if most == 1 else 'are'} {most}",
            node.span,
            fix="raise `n`, or leave `until` out",
        )
    return stopping


def _is_measured(
    what: str,
    stage: str,
    rule: StoppingRule,
    declared: RepeatDecl,
    spec: Spec,
    places: dict[str, Span],
    reading: ClaimReading,
) -> bool:
    """Whether the stage is one of the repeat, and measures the metric."""
    repeat, sink = declared.name.text, reading.sink
    metric = read_metric(rule.metric)
    bound = {name: reading.stages.get(f"{repeat}.1.{name}") for name in declared.stages}
    measuring = [
        name for name, each in bound.items() if each is not None and lacking(each, metric) is None
    ]
    if stage not in declared.stages:
        if declared.broken:
            return False
        inside = stage.removeprefix(f"{repeat}.").removeprefix("*.")
        outside = stage != repeat and (stage in spec.stages or stage in spec.models)
        sink.error(
            "AGC790",
            f"{what} names `{stage}`, which is no stage of that repeat",
            places["stage"],
            expected=f"a stage of it that measures: {listed(measuring)}" if measuring else None,
            notes=(f"`{stage}` stands outside of the rounds: it tells none from another",)
            * outside,
            fix=f"write `{inside}`: that of each round is meant"
            if inside != stage and inside in declared.stages
            else did_you_mean(stage, declared.stages),
        )
        return False
    found = bound[stage]
    missing = "" if found is None else lacking(found, metric)
    if found is None or missing is None:
        return found is not None  # what is wrong with it has been reported
    others = [name for name in measuring if name != stage]
    sink.error(
        "AGC790",
        f"{what} names `{stage}`, which measures no `{rule.metric}`",
        places["metric" if missing and "metric" in places else "stage"],
        expected="a stage of the repeat that measures it: an `evaluate`, a `measure` or a script "
        "with `output: metrics`",
        fix=f"give it `{missing}`" if missing else f"write `{others[0]}`" if others else None,
    )
    return False


def _complaints(
    what: str,
    stopping: StoppingRounds,
    values: dict[str, Json],
    places: dict[str, Span],
    node: MappingNode,
    reading: ClaimReading,
) -> Iterator[tuple[str, Span, str | None]]:
    """What is wrong with the rule itself: messages, their places, and what mends them."""
    rule = stopping.rule
    if rule.reaches is None and rule.no_gain_for is None:
        yield (
            f"{what} says neither `reaches` nor `no_gain_for`",
            node.span,
            "write `reaches: 0.8`, or `no_gain_for: 2`",
        )
    if "min_gain" in values and rule.no_gain_for is None:
        yield (
            "`min_gain` means nothing without `no_gain_for`",
            places["min_gain"],
            "write `no_gain_for: 2` beside it, or leave it out",
        )
    bounds = score_bounds(stopping.measures[0], rule.metric, reading)
    if rule.reaches is None or bounds is None:
        return
    low, high = bounds
    worst, best = (low, high) if rule.direction == "maximize" else (high, low)
    if not low <= rule.reaches <= high or rule.reaches == worst != best:
        always = rule.reaches <= worst if rule.direction == "maximize" else rule.reaches >= worst
        span = f"{shown(low)} to {shown(high)}"
        part = number_of(rule.reaches) / 100
        yield (
            f"{shown(rule.reaches)} is {'always' if always else 'never'} reached: "
            f"`{rule.metric}` is from {span} here",
            places["reaches"],
            f"write {shown(part)}: scores are parts of one"
            if not always and low < part <= high
            else "choose a value between them",
        )
