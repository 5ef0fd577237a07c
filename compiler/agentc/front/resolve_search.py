"""`until:` of repeats and the section `search:` of the IR: rules over the measure of a stage.

`resolve_until` reads one cell, as part of `resolve_names`; `resolve_search` the joined module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.claim_reading import ClaimReading, lacking, number_of
from agentc.front.claim_scores import score_bounds, score_text
from agentc.front.expand_repeat import is_fixed
from agentc.front.expressions import Evaluator
from agentc.front.params import evaluate_params
from agentc.ir.module import Module
from agentc.ir.search import Search, SearchAxis, StoppingRounds, StoppingRule
from agentc.kinds.field import Json
from agentc.kinds.metric_names import read_metric
from agentc.plan.stage_names import matching_names, nearest, without_cell
from agentc.schema import language
from agentc.schema.coerce import Coercion
from agentc.schema.keys import Place, as_mapping, read_keys
from agentc.schema.language import UNTIL_FIELDS
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Unknown, text_of, written
from agentc.syntax.nodes import RepeatDecl, Spec

_UNTIL_EXAMPLE = "a mapping such as `{stage: evaluate, metric: success, reaches: 0.8}`"


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
    node = as_mapping(computed, Place(path, what), sink, _UNTIL_EXAMPLE)
    coercion, before = Coercion(sink), sink.count
    values = None if node is None else coercion.group(node, UNTIL_FIELDS, path)
    if node is None or not isinstance(values, dict) or sink.count > before:
        return None  # of a rule with a slip in it nothing else is sure
    stage = str(values.pop("stage"))
    values = {key: value for key, value in values.items() if value is not None}
    rule = StoppingRule.of({"metric": "reward", **values})
    places = {key.removeprefix(f"{path}."): span for key, span in coercion.spans.items()}
    places |= {each.key.text: each.value.span for each in node.entries}
    if not _measures_in_round(what, stage, rule, declared, spec, places, reading):
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


def _measures_in_round(
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
        if not declared.broken:
            _report_outside(what, stage, measuring, declared, spec, places["stage"], sink)
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


def _report_outside(
    what: str,
    stage: str,
    measuring: list[str],
    declared: RepeatDecl,
    spec: Spec,
    span: Span,
    sink: Sink,
) -> None:
    repeat = declared.name.text
    inside = stage.removeprefix(f"{repeat}.").removeprefix("*.")
    outside = stage != repeat and (stage in spec.stages or stage in spec.models)
    sink.error(
        "AGC790",
        f"{what} names `{stage}`, which is no stage of that repeat",
        span,
        expected=f"a stage of it that measures: {listed(measuring)}" if measuring else None,
        notes=(f"`{stage}` is outside of the rounds: it distinguishes none of them",) * outside,
        fix=f"write `{inside}`: that of each round is meant"
        if inside != stage and inside in declared.stages
        else did_you_mean(stage, declared.stages),
    )


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
        span = f"{score_text(low)} to {score_text(high)}"
        part = number_of(rule.reaches) / 100
        yield (
            f"{score_text(rule.reaches)} is {'always' if always else 'never'} reached: "
            f"`{rule.metric}` is from {span} here",
            places["reaches"],
            f"write {score_text(part)}: scores are parts of one"
            if not always and low < part <= high
            else "choose a value between them",
        )


# The section `search:` of the IR, once all cells are joined: axes over params, and the stage that
# measures a trial.

_SEARCH_EXAMPLE = (
    "a mapping such as `{over: {lr: {low: 1e-6, high: 1e-3, log: true}}, stage: evaluate}`"
)


def resolve_search(
    spec: Spec, module: Module, given: Mapping[str, str], evaluator: Evaluator, sink: Sink
) -> Search | None:
    """The search, or None when there is none or it is broken. `given` are the texts of `-p`, which
    take axes away."""
    if spec.search is None:
        return None
    computed = evaluator.evaluate(spec.search, module.params)
    if isinstance(computed, Unknown):
        return None
    node = as_mapping(computed, Place("search", "`search`"), sink, _SEARCH_EXAMPLE)
    coercion = Coercion(sink)
    if node is not None and not _ranges_are_read(node, coercion):
        # The other keys are reported beside those of the ranges.
        names = [field.name for field in language.SEARCH_FIELDS]
        read_keys(node, names, Place("search", "`search`"), sink)
        return None
    found = None if node is None else coercion.group(node, language.SEARCH_FIELDS, "search")
    if node is None or not isinstance(found, dict):
        return None
    values: dict[str, Any] = {
        field.name: field.default for field in language.SEARCH_FIELDS if not field.required
    }
    values |= {name: value for name, value in found.items() if value is not None}
    over: dict[str, Json] = values.pop("over")
    axes = tuple(_axes(spec, over, node, given, sink))
    measured = _measures_once(module, values, coercion.spans, sink)
    if len(axes) < len(over.keys() - given.keys()) or not measured:
        return None
    return Search(axes=axes, **values)


def _ranges_are_read(node: MappingNode, coercion: Coercion) -> bool:
    """Whether the keys of every range are its own: as one value, a range with a slip in it would be
    refused whole, without a word on the key."""
    over = node.find("over")
    axes = over.value.entries if over and isinstance(over.value, MappingNode) else ()
    fields = language.SEARCH_RANGE_FIELDS
    names = {field.name for field in fields}
    right = True
    for each in axes:
        if isinstance(each.value, MappingNode):
            read = coercion.group(each.value, fields, f"search.over.{each.key.text}")
            own = all(entry.key.text in names for entry in each.value.entries)
            right = right and isinstance(read, dict) and own
    return right


def _axes(
    spec: Spec, over: Mapping[str, Json], node: MappingNode, given: Mapping[str, str], sink: Sink
) -> Iterator[SearchAxis]:
    """Those that are right and that `-p` has not taken away."""
    entry = node.find("over")
    names = entry.value.entries if entry and isinstance(entry.value, MappingNode) else ()
    spans = {each.key.text: each.key.span for each in names}
    matrix = spec.matrix.entries if isinstance(spec.matrix, MappingNode) else ()
    swept = {each.key.text for each in matrix}
    for name, values in over.items():
        if name not in spec.params:
            sink.error(
                "AGC800",
                f"`search.over` names `{name}`, which is no param",
                spans.get(name),
                expected=f"one of {listed(spec.params)}" if spec.params else None,
                fix=did_you_mean(name, spec.params)
                or f'declare it under `params:`, and use it as "{{{{ {name} }}}}"',
            )
        elif name in swept and name not in given:
            sink.error(
                "AGC800",
                f"`search.over` names `{name}`, which the matrix sweeps over",
                spans.get(name),
                notes=("a trial runs all cells of the matrix; its value is their mean",),
                fix="leave it out of one of them",
            )
        elif name not in given:
            axis = _axis(spec, name, values, given, spans.get(name), sink)
            if axis is not None:
                yield axis


def _axis(
    spec: Spec, name: str, values: Json, given: Mapping[str, str], span: Span | None, sink: Sink
) -> SearchAxis | None:
    if isinstance(values, list):
        axis = SearchAxis(name=name, choices=tuple(values))
        trouble = _of_choices(values)
    else:
        assert isinstance(values, dict)
        kind = spec.params[name].settings.get("type")
        low, high, step = (values.get(each) for each in ("low", "high", "step"))
        axis = SearchAxis(
            name=name,
            low=low,  # type: ignore[arg-type]
            high=high,  # type: ignore[arg-type]
            log=values.get("log") is True,
            step=step,  # type: ignore[arg-type]
            integer=kind is not None and text_of(kind.value) == "int",
        )
        trouble = _of_range(axis)
    ends = axis.choices or (axis.low, axis.high)
    trouble = trouble or next(filter(None, (_refused(spec, name, v, given) for v in ends)), None)
    if trouble is None:
        return axis
    message, fix = trouble
    sink.error("AGC801", f"`search.over.{name}` {message}", span, fix=fix)
    return None


def _of_choices(values: list[Json]) -> tuple[str, str] | None:
    bare = [value for value in values if isinstance(value, (bool, int, float, str))]
    if len(bare) < len(values):
        return "has a value that is no text or number", "give texts, numbers, true and false"
    twice = [value for value, count in Counter(map(repr, bare)).items() if count > 1]
    return (f"has {twice[0]} twice", "give each value once") if twice else None


def _of_range(axis: SearchAxis) -> tuple[str, str] | None:
    assert axis.low is not None
    assert axis.high is not None
    numbers = [axis.low, axis.high, *([] if axis.step is None else [axis.step])]
    if axis.low >= axis.high:
        return "has a `low` that is not below its `high`", "exchange them, or give a list of values"
    if axis.integer and any(number != int(number) for number in numbers):
        return "is of whole numbers and has a bound or step that is none", "give whole numbers"
    if axis.log and axis.low <= 0:
        return "has `log: true` and begins at 0 or below", "give a `low` above 0"
    if axis.log and axis.step is not None:
        return "has both `log` and `step`", "leave one of them out"
    return None


def _refused(
    spec: Spec, name: str, value: Json, given: Mapping[str, str]
) -> tuple[str, str] | None:
    """What the param says of a value, by its own type and bounds."""
    text = written(value)
    found = Sink()
    evaluate_params(spec, {**given, name: text}, Evaluator(Sink()), found)
    errors = [each for each in found.sorted() if each.severity == "error"]
    if not errors:
        return None
    said = errors[0]
    expected = f" (expected {said.expected})" if said.expected else ""
    return f"has the value {text}: {said.message}{expected}", "leave it out, or fix the param"


def _measures_once(
    module: Module, values: Mapping[str, Json], spans: Mapping[str, Span], sink: Sink
) -> bool:
    """Whether the stage is there, one in each round and cell, and measures the metric."""
    if sink.has_errors:
        return True  # stages that are left out may be the ones
    name, metric = str(values["stage"]), read_metric(str(values["metric"]))
    span = spans.get("search.stage")
    meant = matching_names(name, module.stages)
    if not meant:
        sink.error(
            "AGC802",
            f"`search.stage` names `{name}`, which is no stage",
            span,
            fix=nearest(name, module.stages),
        )
        return False
    stages = [module.stages[each] for each in meant]
    if any(stages[0].id in each for ends in module.stopping for each in ends.rounds):
        sink.error(
            "AGC802",
            f"`search.stage` names `{name}`, in rounds that `until` may end",
            span,
            expected="a stage after the rounds, which all trials have",
        )
        return False
    several = len({_without_round(without_cell(stage.id)) for stage in stages}) > 1
    missing = "" if several else lacking(stages[0], metric)
    if missing is None:
        if values["pruner"] != "none" and stages[0].round is None:
            sink.warning(
                "AGC803",
                f"`{name}` is in no repeat, so that nothing is pruned",
                spans.get("search.pruner", span),
                fix="leave `pruner` out; it looks at a trial after each round",
            )
        return True
    what = f"means {listed(meant)}" if several else f"measures no `{values['metric']}`"
    sink.error(
        "AGC802",
        f"`search.stage` names `{name}`, which {what}",
        span,
        expected="one stage that measures it: an `evaluate`, a `measure` or a script with "
        "`output: metrics`",
        fix=f"give it `{missing}`" if missing else None,
    )
    return False


def _without_round(name: str) -> str:
    return ".".join(part for part in name.split(".") if not part.isdigit())
