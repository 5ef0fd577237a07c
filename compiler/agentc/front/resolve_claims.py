"""The claims of the IR: bound to evaluate stages, in units of the metric. Part of `resolve_names`.

What a claim says is checked against what the environment can give (`claim_scores.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.diagnostic import Origin
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.claim_reading import (
    ClaimReading,
    WrittenClaim,
    number_of,
    setting_in_effect,
    unmet_needs,
)
from agentc.front.claim_scores import (
    COUNTS,
    has_reward_name,
    is_comparable,
    is_comparable_curve,
    is_of_curves,
    report_range,
    score_bounds,
    score_text,
)
from agentc.front.expand_repeat import Unrolled
from agentc.front.params import EXCLUDE
from agentc.front.stage_references import RefusedReference
from agentc.ir.claim import Claim, Relation
from agentc.kinds import VERDICTS_KIND
from agentc.kinds.artifacts import METRICS, POLICY_RUN, SFT_DATASET, ArtifactType
from agentc.kinds.field import Field, Json
from agentc.kinds.metric_names import read_metric
from agentc.schema import language
from agentc.schema.coerce import Coercion
from agentc.source.tree import Entry, Unknown, described
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.nodes import Spec, StageDecl

_RELATIONS: tuple[Relation, ...] = ("value", "above", "below")


def resolve_claims(spec: Spec, reading: ClaimReading) -> tuple[Claim, ...]:
    """The claims that are right; what is wrong with the others is in the sink."""
    _check_verdicts(spec, reading)
    found = (_claim(name, entry, spec, reading) for name, entry in spec.claims.items())
    return tuple(claim for claim in found if claim is not None)


def _claim(name: str, entry: Entry, spec: Spec, reading: ClaimReading) -> Claim | None:
    written = _written(name, entry, reading)
    if written is None:
        return None
    values = written.values
    relation = _relation(written, reading.sink)
    over = _over(written, spec, reading.sink)
    metric = str(values.get("metric", "reward"))
    other = _text(values.get("difference_metric"))
    if not _of_two(written, metric, other, reading.sink) or not is_of_curves(
        written, metric, reading.sink
    ):
        return None
    stage = _measuring(written, "stage", metric, spec, reading)
    compared = _baseline(written, metric, other, spec, reading)
    if relation is None or stage is None or over is None or compared is None:
        return None
    (baseline,) = compared
    bounds = _bounds(written, (stage, metric), (baseline, other), reading)
    if bounds is None:
        return None
    unit = 100.0 if values.get("percent") is True else 1.0
    value = number_of(values[relation]) / unit
    if not bounds[0] <= value <= bounds[1]:
        report_range(written, relation, bounds, unit, stage, reading)
        return None
    if unit != 1.0 and baseline is None and 0 < abs(value) < 0.01:
        reading.sink.warning(
            "AGC445",
            f"with `percent: true` this is {score_text(100 * value)} points of a hundred",
            written.at(relation),
            fix="leave out `percent` if the paper prints parts of one",
        )
    tolerance = values.get("tolerance")
    return Claim(
        name=name,
        what=_text(values.get("what")) or name,
        table=_text(values.get("table")),
        stage=stage,
        metric=metric,
        relation=relation,
        value=value,
        bounds=bounds,
        tolerance=None if tolerance is None else number_of(tolerance) / unit,
        n=_whole(values.get("n")),
        seeds=_whole(values.get("seeds")),
        difference_from=baseline,
        difference_metric=None if other == metric else other,
        reach=number_of(values["reach"]) if read_metric(metric).of_curve else None,
        percent=unit != 1.0,
        gate=values.get("gate") is True,
        unmet=unmet_needs(written, stage, reading),
        over=over,
        origin=Origin(entry.key.span),
    )


def _written(name: str, entry: Entry, reading: ClaimReading) -> WrittenClaim | None:
    """A claim whose keys and values have the right types."""
    node = reading.evaluator.evaluate(entry.value, reading.params)
    if isinstance(node, Unknown):
        return None
    if not isinstance(node, MappingNode):
        reading.sink.error(
            "AGC203",
            f"`claims.{name}` cannot be {described(node)}",
            node.span,
            expected="a mapping such as `{what: ..., stage: STAGE, difference_from: STAGE, "
            "above: 0}`",
        )
        return None
    whole = Field(
        name=name, schema={"type": "object"}, doc="A claim.", fields=language.CLAIM_FIELDS
    )
    values = Coercion(reading.sink).field(node, whole, f"claims.{name}")
    return WrittenClaim(name, values, node, entry.key.span) if isinstance(values, dict) else None


def _baseline(
    written: WrittenClaim, metric: str, other: str | None, spec: Spec, reading: ClaimReading
) -> tuple[str | None] | None:
    """The stage that the claim compares with, if it names any; None where that is wrong."""
    against = "ratio_to" if read_metric(metric).of_curve else "difference_from"
    if written.values.get(against) is not None:
        baseline = _measuring(written, against, other or metric, spec, reading)
        return None if baseline is None else (baseline,)
    if other is not None:
        reading.sink.error(
            "AGC441",
            "`difference_metric` means nothing without `difference_from`",
            written.at("difference_metric"),
            fix="leave it out, or name the evaluation that it is measured of",
        )
        return None
    return (None,)


def _bounds(
    written: WrittenClaim,
    measured: tuple[str, str],
    against: tuple[str | None, str | None],
    reading: ClaimReading,
) -> tuple[float, float] | None:
    """The lowest and the highest number that the claim can be about; None where the stages cannot
    be compared, or one of them or its environment is wrong. `measured` and `against` are stages
    with their metrics."""
    (stage, metric), (baseline, other) = measured, against
    if not has_reward_name(written, "metric", stage, metric, reading):
        return None
    bounds = score_bounds(stage, metric, reading)
    if read_metric(metric).of_curve and bounds is not None:
        comparable = is_comparable_curve(written, stage, baseline, bounds, reading)
        return COUNTS if comparable else None
    if baseline is None:
        return bounds
    key = "difference_metric" if other else "metric"
    if not has_reward_name(written, key, baseline, other or metric, reading):
        return None
    if not is_comparable(written, measured, (baseline, other or metric), reading):
        return None
    theirs = score_bounds(baseline, other or metric, reading)
    if bounds is None or theirs is None or read_metric(metric).of_two:
        return None if theirs is None else bounds
    return bounds[0] - theirs[1], bounds[1] - theirs[0]


def _of_two(written: WrittenClaim, metric: str, other: str | None, sink: Sink) -> bool:
    """Whether a measure of two evaluations has both, and one metric."""
    against = written.values.get("difference_from")
    if read_metric(metric).of_two and against is None:
        sink.error(
            "AGC441",
            f"`{metric}` means nothing without `difference_from`",
            written.at("metric"),
            fix="name the evaluation that is to be beaten",
        )
        return False
    two = [each for each in (metric, other) if each is not None and read_metric(each).of_two]
    if other is not None and two:
        sink.error(
            "AGC441",
            f"`{two[0]}` is of two evaluations already, so that `difference_metric` means nothing",
            written.at("difference_metric"),
            fix="leave `difference_metric` out",
        )
        return False
    return True


def _relation(written: WrittenClaim, sink: Sink) -> Relation | None:
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


def _over(written: WrittenClaim, spec: Spec, sink: Sink) -> tuple[str, ...] | None:
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


def _measuring(
    written: WrittenClaim, key: str, metric: str, spec: Spec, reading: ClaimReading
) -> str | None:
    """The one stage that a reference means, if it measures the metric."""
    named = read_metric(metric)
    product = SFT_DATASET if named.of_revisions else POLICY_RUN if named.of_curve else METRICS
    possible = list(_stages_of(product, reading))
    stage = _meant(written, key, possible, spec, reading)
    kind = {each.id: each.declared.kind for each in reading.rounds.stages}.get(stage or "")
    if stage is None or kind is None:
        return None
    bound = reading.stages.get(stage)
    missing = named.missing(kind, lambda name: setting_in_effect(kind, bound, name))
    if missing is None:
        return stage
    text = str(written.values[key]).strip()
    if kind.produces is not METRICS or named.of_revisions or named.of_curve:
        measures = kind.produces in (METRICS, POLICY_RUN) or kind.has("parts")
        what = f"no `{metric}`" if measures else "nothing"
        reading.sink.error(
            "AGC440",
            f"`{text}` is of kind {kind.name}, which measures {what}",
            written.at(key),
            expected=_one_of(possible, _MEASURES[product.name]),
            fix=f"set `{missing}` in it" if missing else did_you_mean(text, possible),
        )
    elif bound is not None:  # else what is wrong with it has been reported
        reading.sink.error(
            "AGC447",
            f"`{text}` does not measure `{metric}`",
            written.at("difference_metric" if key == "difference_from" else "metric"),
            expected="a metric that the stage is asked for",
            fix=f"set `{missing}` in `{bound.id}`" if missing else None,
        )
    return None


def _meant(
    written: WrittenClaim, key: str, possible: list[str], spec: Spec, reading: ClaimReading
) -> str | None:
    """The one stage that a reference means."""
    text = str(written.values[key]).strip()
    declared = StageDecl(name=spec.claims[written.name].key, kind=None, span=written.span)
    meant = reading.references.resolve(
        text, Unrolled(id="claims", declared=declared, scope=reading.params)
    )
    if isinstance(meant, RefusedReference):
        if meant.code is not None:
            unknown = meant.code == "AGC401"
            reading.sink.error(
                meant.code,
                meant.message,
                written.at(key),
                expected=_one_of(possible) if unknown else meant.expected,
                notes=meant.notes,
                fix=(did_you_mean(text, possible) if unknown else None) or meant.fix,
            )
        return None
    # Carried names, which may mean nodes, exist inside of repeats only.
    stages = [each for each in meant if isinstance(each, str)]
    if len(stages) != 1:
        reading.sink.error(
            "AGC404",
            f"`{key}` of a claim takes one stage, not {listed(stages)}",
            written.at(key),
            fix=f"write `{text.replace('.*.', '.')}` for the last round's",
        )
        return None
    return stages[0]


_MEASURES = {
    METRICS.name: "an evaluate",
    SFT_DATASET.name: "a revise",
    POLICY_RUN.name: "an online_rl",
}
"""What a stage is called that makes such."""


def _one_of(possible: list[str], what: str = "an evaluate") -> str:
    return f"one of {listed(possible)}" if possible else f"{what} stage; this spec has none"


def _stages_of(product: ArtifactType, reading: ClaimReading) -> Iterator[str]:
    """References to the stages that measure: evaluations, revisions or runs of RL, which is meant;
    those of rounds by their short name, once."""
    names: dict[str, None] = {}
    for each in reading.rounds.stages:
        kind = each.declared.kind
        if kind is None or kind.produces is not product:
            continue
        if kind.products or "environment" in kind.uses:
            short = f"{each.repeat}.{each.declared.name.text}" if each.repeat else each.id
            names[short] = None
    yield from names


def _check_verdicts(spec: Spec, reading: ClaimReading) -> None:
    """A stage of kind `verdicts` only sets how claims are tested: one is enough, and without claims
    it would do nothing."""
    stages = [
        each
        for each in reading.rounds.stages
        if each.declared.kind is not None and each.declared.kind.name == VERDICTS_KIND
    ]
    if stages and not spec.claims:
        reading.sink.error(
            "AGC448",
            "a stage of kind verdicts, but the spec has no `claims:`",
            stages[0].declared.span,
            fix="write the paper's numbers under `claims:`, or leave the stage out",
        )
    if len(stages) > 1:
        reading.sink.error(
            "AGC449",
            f"`{stages[1].id}` is a second stage of kind verdicts",
            stages[1].declared.span,
            notes=(f"`{stages[0].id}` tests every claim already",),
            steps=stages[1].steps,
        )


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
