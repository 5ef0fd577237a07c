"""The claims of the IR: bound to evaluate stages, in units of the metric. Part of `resolve_names`.

What a claim says is checked against what the environment can give: a number that no policy could
reach is a slip of the pen, most often points of a hundred without `percent: true`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.artifacts import METRICS
from agentc.ir.claim import Claim, Relation
from agentc.ir.module import Resource, Stage
from agentc.kinds.field import Field, Json
from agentc.passes.expand_matrix import EXCLUDE
from agentc.passes.expand_repeat import Rounds, Unrolled
from agentc.passes.references import References, Refused
from agentc.schema import language
from agentc.schema.coerce import Coercion
from agentc.source.span import Origin, Span
from agentc.source.tree import Entry, Unknown
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.expression import Evaluator
from agentc.syntax.nodes import Spec, StageDecl

JUDGE = "judge"
_RELATIONS: tuple[Relation, ...] = ("value", "above", "below")
_SAME_TASKS = ("split", "limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReading:
    """What reading claims needs to know of the rest of the spec; `stages` are those that could be
    bound."""

    rounds: Rounds
    references: References
    stages: Mapping[str, Stage]
    environments: Mapping[str, Resource]
    table: BackendTable
    params: Mapping[str, Json]
    evaluator: Evaluator
    sink: Sink


@dataclass(frozen=True, slots=True)
class _Written:
    """A claim as coerced; `span` is its name's."""

    name: str
    values: Mapping[str, Json]
    node: MappingNode
    span: Span

    def at(self, key: str) -> Span:
        """The place of a value."""
        entry = self.node.find(key)
        return self.span if entry is None else entry.value.span


def resolve_claims(spec: Spec, reading: ClaimReading) -> tuple[Claim, ...]:
    """The claims that are right; what is wrong with the others is in the sink."""
    _check_judge(spec, reading)
    found = (_claim(name, entry, spec, reading) for name, entry in spec.claims.items())
    return tuple(claim for claim in found if claim is not None)


def _claim(name: str, entry: Entry, spec: Spec, reading: ClaimReading) -> Claim | None:
    node = reading.evaluator.evaluate(entry.value, reading.params)
    if isinstance(node, Unknown):
        return None
    whole = Field(
        name=name, schema={"type": "object"}, doc="A claim.", fields=language.CLAIM_FIELDS
    )
    values = Coercion(reading.sink).field(node, whole, f"claims.{name}")
    if not isinstance(values, dict) or not isinstance(node, MappingNode):
        return None
    written = _Written(name, values, node, entry.key.span)
    relation = _relation(written, reading.sink)
    over = _over(written, spec, reading.sink)
    stage = _evaluation(written, "stage", spec, reading)
    baseline = None
    if values.get("difference_from") is not None:
        baseline = _evaluation(written, "difference_from", spec, reading)
        if baseline is None:
            return None
    if relation is None or stage is None or over is None:
        return None
    metric = str(values.get("metric", "reward"))
    bounds = _bounds(stage, metric, reading)
    if baseline is not None:
        if not _comparable(written, stage, baseline, reading):
            return None
        if bounds is not None:
            bounds = bounds[0] - bounds[1], bounds[1] - bounds[0]
    unit = 100.0 if values.get("percent") is True else 1.0
    value = _number(values[relation]) / unit
    if bounds is None:
        return None  # the stage or its environment is wrong, which has been reported
    if not bounds[0] <= value <= bounds[1]:
        _report_range(written, relation, bounds, unit, stage, reading)
        return None
    if unit != 1.0 and baseline is None and 0 < abs(value) < 0.01:
        reading.sink.warning(
            "AGC445",
            f"with `percent: true` this is {_shown(100 * value)} points of a hundred",
            written.at(relation),
            fix="leave out `percent` if the paper prints parts of one",
        )
    tolerance = values.get("tolerance")
    return Claim(
        name=name,
        what=str(values["what"]),
        table=_text(values.get("table")),
        stage=stage,
        metric=metric,
        relation=relation,
        value=value,
        bounds=bounds,
        tolerance=None if tolerance is None else _number(tolerance) / unit,
        n=_whole(values.get("n")),
        seeds=_whole(values.get("seeds")),
        difference_from=baseline,
        percent=unit != 1.0,
        gate=values.get("gate") is True,
        over=over,
        origin=Origin(entry.key.span),
    )


def _relation(written: _Written, sink: Sink) -> Relation | None:
    """Which of `value`, `above` and `below` the claim makes; what belongs to `value` alone stands
    with it."""
    given = [name for name in _RELATIONS if written.values.get(name) is not None]
    if len(given) != 1:
        sink.error(
            "AGC441",
            f"claim `{written.name}` says "
            + (f"{' and '.join(f'`{name}`' for name in given)}" if given else "nothing"),
            written.at(given[1]) if given else written.span,
            expected="one of `value`, `above`, `below`",
        )
        return None
    relation = given[0]
    if relation == "value":
        if written.values.get("n") is None:
            sink.error(
                "AGC443",
                f"claim `{written.name}` gives a value without `n`",
                written.span,
                expected="`n: ...`, the number of test tasks behind the paper's number",
                notes=("without it nobody can say how exact the paper's number is",),
            )
            return None
        return relation
    if written.values.get("tolerance") is not None:
        sink.error(
            "AGC441",
            f"`tolerance` means nothing beside `{relation}`",
            written.at("tolerance"),
            fix="leave it out, or claim a `value`",
        )
        return None
    return relation


def _over(written: _Written, spec: Spec, sink: Sink) -> tuple[str, ...] | None:
    """The swept params that the claim takes together; None when one is not swept."""
    given = written.values.get("over") or []
    assert isinstance(given, list)
    matrix = spec.matrix.entries if isinstance(spec.matrix, MappingNode) else ()
    swept = [entry.key.text for entry in matrix if entry.key.text != EXCLUDE]
    for name in map(str, given):
        if name not in swept:
            sink.error(
                "AGC446",
                f"claim `{written.name}` goes over `{name}`, which is not swept",
                written.at("over"),
                expected=f"some of {listed(swept)}" if swept else "a param of a `matrix:`",
                fix=did_you_mean(name, swept)
                or f"sweep it: `matrix: {{{name}: [...]}}`, or leave `over` out",
            )
            return None
    return tuple(map(str, given))


def _evaluation(written: _Written, key: str, spec: Spec, reading: ClaimReading) -> str | None:
    """The one stage that a reference means, if it makes Metrics."""
    text = str(written.values[key]).strip()
    possible = list(_evaluations(reading))
    declared = StageDecl(name=spec.claims[written.name].key, kind=None, span=written.span)
    found = reading.references.resolve(
        text, Unrolled(id="claims", declared=declared, scope=reading.params)
    )
    if isinstance(found, Refused):
        if found.code is not None:
            unknown = found.code == "AGC401"
            reading.sink.error(
                found.code,
                found.message,
                written.at(key),
                expected=_one_of(possible) if unknown else found.expected,
                notes=found.notes,
                fix=(did_you_mean(text, possible) if unknown else None) or found.fix,
            )
        return None
    if not isinstance(found, tuple):
        return None  # carried names exist inside of repeats only
    if len(found) != 1:
        reading.sink.error(
            "AGC404",
            f"`{key}` of a claim takes one stage, not {listed(found)}",
            written.at(key),
            fix=f"write `{text.replace('.*.', '.')}` for the last round's",
        )
        return None
    kinds = {each.id: each.declared.kind for each in reading.rounds.stages}
    kind = kinds.get(found[0])
    if kind is None:
        return None
    if kind.produces is not METRICS:
        reading.sink.error(
            "AGC440",
            f"`{text}` is of kind {kind.name}, which measures nothing",
            written.at(key),
            expected=_one_of(possible),
            fix=did_you_mean(text, possible),
        )
        return None
    return found[0]


def _one_of(possible: list[str]) -> str:
    return f"one of {listed(possible)}" if possible else "an evaluate stage; this spec has none"


def _evaluations(reading: ClaimReading) -> Iterator[str]:
    """References to the evaluate stages: those of rounds by their short name, once."""
    names: dict[str, None] = {}
    for each in reading.rounds.stages:
        if each.declared.kind is not None and each.declared.kind.produces is METRICS:
            short = f"{each.repeat}.{each.declared.name.text}" if each.repeat else each.id
            names[short] = None
    yield from names


def _bounds(stage: str, metric: str, reading: ClaimReading) -> tuple[float, float] | None:
    """The lowest and the highest score of a task; None when the environment is not known."""
    bound = reading.stages.get(stage)
    if bound is None:
        return None
    entry = reading.environments.get(bound.uses.get("environment", ""))
    backend = None if entry is None else reading.table.backends.get(entry.backend)
    if entry is None or not isinstance(backend, EnvironmentBackend):
        return None
    if metric == "success":
        return (0.0, 1.0)
    return backend.under({name: value.json for name, value in entry.fields.items()}).reward_range


def _comparable(written: _Written, stage: str, baseline: str, reading: ClaimReading) -> bool:
    """Whether both evaluations are on the same tasks, as far as the spec says."""
    one, other = reading.stages.get(stage), reading.stages.get(baseline)
    if one is None or other is None:
        return True
    differing: list[str] = []
    if stage == baseline:
        reason = "they are the same stage"
    elif one.uses.get("environment") != other.uses.get("environment"):
        reason = "they use different environments"
    else:
        kind = {name: (_set(one, name), _set(other, name)) for name in _SAME_TASKS}
        differing = [name for name, (left, right) in kind.items() if left != right]
        if not differing:
            return True
        left, right = kind[differing[0]]
        reason = f"`{differing[0]}` is {_json(left)} in one and {_json(right)} in the other"
    reading.sink.error(
        "AGC444",
        f"`{stage}` and `{baseline}` cannot be paired by task: {reason}"
        if stage != baseline
        else f"`{stage}` cannot be compared with itself",
        written.at("difference_from"),
        expected="two evaluations of the same tasks",
        rests_on=[each.spans[name] for each in (one, other) for name in differing
                  if name in each.spans],
    )  # fmt: skip
    return False


def _set(stage: Stage, name: str) -> Json:
    value = stage.fields.get(name)
    return None if value is None else value.json


def _json(value: Json) -> str:
    return "not set" if value is None else f"`{value}`"


def _report_range(
    written: _Written,
    relation: Relation,
    bounds: tuple[float, float],
    unit: float,
    stage: str,
    reading: ClaimReading,
) -> None:
    number = _number(written.values[relation])
    environment = reading.stages[stage].uses["environment"]
    low, high = (_shown(bound * unit) for bound in bounds)
    what = "differences" if written.values.get("difference_from") is not None else "scores"
    points = unit == 1.0 and bounds[0] <= number / 100 <= bounds[1]
    reading.sink.error(
        "AGC442",
        f"{_shown(number)} lies outside the {what} that `{environment}` can give, {low} to {high}",
        written.at(relation),
        fix="add `percent: true` if the paper prints points of a hundred" if points else None,
    )


def _check_judge(spec: Spec, reading: ClaimReading) -> None:
    """A stage of kind `judge` only sets how claims are judged: one is enough, and without claims
    it would do nothing."""
    judges = [
        each
        for each in reading.rounds.stages
        if each.declared.kind is not None and each.declared.kind.name == JUDGE
    ]
    if judges and not spec.claims:
        reading.sink.error(
            "AGC448",
            "a stage of kind judge, but the spec has no `claims:`",
            judges[0].declared.span,
            fix="write the paper's numbers under `claims:`, or leave the stage out",
        )
    if len(judges) > 1:
        reading.sink.error(
            "AGC449",
            f"`{judges[1].id}` is a second stage of kind judge",
            judges[1].declared.span,
            notes=(f"`{judges[0].id}` judges every claim already",),
            steps=judges[1].steps,
        )


def _number(value: Json) -> float:
    assert isinstance(value, (int, float))
    return float(value)


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _shown(number: float) -> str:
    return f"{number:.6g}"
