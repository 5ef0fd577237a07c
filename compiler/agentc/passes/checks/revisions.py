"""Rules about revisions: bars that trajectories can pass, and marks that a training heeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.suggest import listed
from agentc.ir.module import Stage, product_of
from agentc.kinds import kind_named
from agentc.kinds.artifacts import METRICS, SEARCH_TREES, SFT_DATASET
from agentc.kinds.interaction import PREFIXES
from agentc.kinds.table import REWORKERS, makers
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext

_SPLICED = ("revision", "direct")
_SMALL = 0.02
"""A bar in the lowest fiftieth of a range is meant for another one, as a rule: the released bars of
0.5 and 0.2 for rewards up to 1, in environments whose rewards go up to 100."""


def alpha_passable(subject: StageContext) -> Iterator[Finding]:
    """Some reward of the environment passes `alpha`."""
    found = _bars(subject)
    if found is None or found.alpha is None:
        return
    above = found.alpha_is == "above"
    if found.alpha < found.high or (found.alpha == found.high and not above):
        return
    fix = f"set alpha {'below' if above else 'to'} {found.high:g}{'' if above else ' or less'}"
    if found.alpha == found.high:
        fix = f"set `alpha_is: at_least`, or alpha a little below {found.high:g}"
    yield Finding(
        message=f"no trajectory has a reward {'above' if above else 'of'} {found.alpha:g}"
        f"{'' if above else ' or more'}, so there are no rows",
        path="alpha",
        notes=(found.range_note, subject.settings.note("alpha_is")),
        fix=fix,
    )


def alpha_sorts(subject: StageContext) -> Iterator[Finding]:
    """`alpha` leaves some trajectories out, and is on the scale of the rewards."""
    found = _bars(subject)
    if found is None or found.alpha is None:
        return
    if found.alpha < found.low or (found.alpha == found.low and found.alpha_is == "at_least"):
        yield Finding(
            message=f"an alpha of {found.alpha:g} counts every trajectory as good",
            path="alpha",
            notes=(found.range_note, subject.settings.note("alpha_is")),
            fix=f"set alpha between {found.low:g} and {found.high:g}",
        )
    elif found.low < found.alpha < found.low + _SMALL * (found.high - found.low):
        share = (found.alpha - found.low) / (found.high - found.low)
        yield Finding(
            message=f"an alpha of {found.alpha:g} is passed by almost every trajectory",
            path="alpha",
            notes=(
                found.range_note,
                f"bars are in the environment's own range: {found.alpha:g} is {100 * share:g}% "
                "of it",
            ),
            fix=f"if it is meant for rewards from 0 to 1, set alpha: {_scaled(found):g}",
        )


def beta_passable(subject: StageContext) -> Iterator[Finding]:
    """Two rewards of the environment can be as far apart as `beta` wants them."""
    found = _bars(subject)
    settings = subject.settings
    beta = settings.number("beta")
    if found is None or beta is None or not set(_SPLICED) & set(settings.texts("parts")):
        return
    if settings.text("beta_is") == "gap":
        width = found.high - found.low
        if beta < width:
            return
        message = f"no two rewards differ by more than {beta:g}, so there are no pairs"
        fix = f"set beta below {width:g}"
    else:
        if found.low < beta < found.high:
            return
        side = "below" if beta <= found.low else "above"
        message = f"no trajectory has a reward {side} {beta:g}, so there are no pairs"
        fix = f"set beta between {found.low:g} and {found.high:g}"
    yield Finding(
        message=message,
        path="beta",
        notes=(found.range_note, settings.note("beta_is")),
        fix=fix,
    )


def trees_of_stage(subject: StageContext) -> Iterator[Finding]:
    """The trees are of the stage's environment, and of the actor that judges them."""
    stage, module = subject.stage, subject.module
    searches = [
        found
        for name in stage.inputs.get("trees", ())
        if (found := module.stages.get(name)) is not None and found.kind in makers(SEARCH_TREES)
    ]
    environment = stage.uses.get("environment")
    for search in searches:
        other = search.uses.get("environment")
        if environment is not None and other is not None and other != environment:
            yield Finding(
                message=f"`{search.id}` searched in `{other}`, and `{stage.id}` names "
                f"`{environment}`",
                path="environment" if "environment" in stage.spans else "trees",
                severity="error",
                notes=(
                    "bars are in the rewards of the environment, and splices are replayed in it",
                ),
                fix=f"set environment: {other}, with one revise stage for each environment",
            )
    policies = stage.inputs.get("model", ())
    actors = dict.fromkeys(name for each in searches for name in each.inputs.get("model", ()))
    judged = "revision" in subject.settings.texts("parts")
    if judged and policies and actors and policies[0] not in actors:
        yield Finding(
            message=f"`{policies[0]}` judges what {listed(actors)} did",
            path="model",
            notes=("in Agent-R the actor judges itself, so that it learns what it can notice",),
            fix=f"set model: {next(iter(actors))}, unless another judge is meant",
        )


def revisions_compared(subject: StageContext) -> Iterator[Finding]:
    """A comparison is of evaluations alone, or of revisions alone, in one environment."""
    inputs, module = subject.stage.inputs, subject.module
    named = [(role, n, name) for role in ("of", "baseline") for n, name in
             enumerate(inputs.get(role, ()))]  # fmt: skip
    found = [(f"{role}.{n}", stage) for role, n, name in named
             if (stage := module.stages.get(name)) is not None]  # fmt: skip
    measured = [stage for _, stage in found if product_of(stage) is METRICS]
    data = [(path, stage) for path, stage in found if product_of(stage) is SFT_DATASET]
    for path, stage in data:
        parts = subject.of_stages[stage.id].texts("parts")
        kind = kind_named(stage.kind)
        revises = kind is not None and kind.has("parts")
        if "revision" not in parts:
            yield Finding(
                message=f"nothing of `{stage.id}` can be compared: "
                + (
                    "without the part `revision` no mistake is looked for"
                    if revises
                    else f"it is of kind `{stage.kind}`, and measures nothing"
                ),
                path=path,
                expected="evaluations, or revise stages with the part `revision`",
                fix=f"add `revision` to `parts` of `{stage.id}`" if revises else None,
            )
            return
        if measured:
            yield Finding(
                message=f"`{stage.id}` is a revision and `{measured[0].id}` an evaluation, which "
                "have no score in common",
                path=path,
                fix="compare them in tables of their own",
            )
            return
    worlds = {stage.uses.get("environment"): stage for _, stage in reversed(data)}
    if len(worlds) > 1:
        one, other, *_ = reversed(worlds.values())
        yield Finding(
            message=f"`{one.id}` revises in `{one.uses.get('environment')}` and `{other.id}` in "
            f"`{other.uses.get('environment')}`, so that they have no task in common",
            path="of",
            fix="compare revisions of one environment in each table",
        )
    if data and subject.settings.get("wins") is True:
        yield Finding(
            message=f"`{data[0][1].id}` is a revision, which has no reward that could win",
            path="wins",
            fix="remove it",
        )


def marks_heeded(subject: StageContext) -> Iterator[Finding]:
    """A training on replies that are marked as not trained says whether it heeds the marks."""
    if subject.settings.is_set("loss_on"):
        return
    for name in subject.stage.inputs.get("data", ()):
        source = _marked(name, subject)
        if source is None:
            continue
        through = "" if source.id == name else f" (through `{name}`)"
        if source.inputs.get(PREFIXES.name):
            begins = listed(source.inputs[PREFIXES.name])
            yield Finding(
                message=f"replies that `{source.id}`{through} continues from would be trained like "
                "its policy's own",
                path="data",
                notes=(subject.settings.note("loss_on"), f"they are of {begins}"),
                fix="set `loss_on: marked` to train only the policy's replies, or `loss_on: "
                "all_replies` to train all",
            )
            return
        yield Finding(
            message=f"bad replies of `{source.id}`{through} would be trained like good ones",
            path="data",
            notes=(
                subject.settings.note("loss_on"),
                subject.of_stages[source.id].note("parts"),
            ),
            fix="set `loss_on: marked` to train only signals and good replies (Agent-R, "
            "equation 6), or `loss_on: all_replies` to train all, as its released code does",
        )
        return


def _marked(name: str, subject: StageContext) -> Stage | None:
    """The stage that marks replies and that the data of a stage are from, directly or mixed."""
    waiting: list[str] = [name]
    seen: set[str] = set()
    while waiting:
        found = subject.module.stages.get(waiting.pop())
        if found is None or found.id in seen:
            continue
        seen.add(found.id)
        spliced = set(subject.of_stages[found.id].texts("parts")) & set(_SPLICED)
        if spliced or found.inputs.get(PREFIXES.name):
            return found
        for role in reversed(REWORKERS.get(found.kind, ())):
            waiting.extend(reversed(found.inputs.get(role, ())))
    return None


@dataclass(frozen=True, slots=True)
class _Bars:
    """The bar of a revise stage, and the environment's range of rewards."""

    alpha: float | None
    alpha_is: str | None
    low: float
    high: float
    range_note: str


def _bars(subject: StageContext) -> _Bars | None:
    environment = subject.environment()
    if environment is None:
        return None
    low, high = environment.reward_range
    return _Bars(
        alpha=subject.settings.number("alpha"),
        alpha_is=subject.settings.text("alpha_is"),
        low=low,
        high=high,
        range_note=f"rewards of {environment.id} run from {low:g} to {high:g}",
    )


def _scaled(bars: _Bars) -> float:
    assert bars.alpha is not None
    return bars.low + bars.alpha * (bars.high - bars.low)


REVISIONS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC685",
            "a comparison of unlike results",
            "A table compares what its rows measured: rewards of evaluations, or how early and how "
            "often actors found their mistakes, of revise stages with the part `revision`. Other "
            "data sets measure nothing, and a table has one kind of score.",
        ),
        kinds=("compare",),
        check=revisions_compared,
    ),
    Rule(
        code=Code(
            "AGC690",
            "an alpha that no trajectory passes",
            "A trajectory is good when its reward is above `alpha` (or at least alpha). Agent-R's "
            "third iteration states alpha = 1 under a strict comparison: where rewards end at 1, "
            "that keeps nothing.",
        ),
        kinds=("revise",),
        check=alpha_passable,
    ),
    Rule(
        code=Code(
            "AGC691",
            "a beta that no pair passes",
            "`beta` separates the bad trajectory of a pair from the good one: by the gap between "
            "their "
            "rewards, or as a ceiling of the bad one. The environment's rewards never are that far "
            "apart.",
        ),
        kinds=("revise",),
        check=beta_passable,
    ),
    Rule(
        code=Code(
            "AGC692",
            "an alpha that sorts nothing out",
            "Bars are in the environment's own range of rewards. The published ones are for "
            "rewards from 0 to 1; where rewards go up to 100 they let nearly everything pass.",
        ),
        kinds=("revise",),
        check=alpha_sorts,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC693",
            "marked replies, and a training that does not say whether it heeds them",
            "A revision begins with replies that were mistakes, marked `loss: false`. By default "
            "a trainer imitates every reply, mistakes included. The paper leaves them out of the "
            "loss, its released code trains them: so the spec has to choose. Episodes and trees "
            "that continue from other trajectories mark the replies of these likewise.",
        ),
        kinds=("sft",),
        check=marks_heeded,
    ),
    Rule(
        code=Code(
            "AGC694",
            "trees of another environment or actor",
            "A revise stage reads the rewards of trees and replays their actions in its "
            "environment, and its policy judges what the searching policy did. Both are those of "
            "the search as a rule.",
        ),
        kinds=("revise",),
        check=trees_of_stage,
        severity="warning",
    ),
)
