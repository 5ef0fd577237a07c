"""Rules about revisions: bars that trajectories can pass, and marks that a training heeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentc.diagnostics.suggest import listed
from agentc.ir.module import Stage
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Subject, settings_of

_SPLICED = ("revision", "direct")
_SMALL = 0.02
"""A bar in the lowest fiftieth of a range is meant for another one, as a rule: the released bars of
0.5 and 0.2 for rewards up to 1, in environments whose rewards go up to 100."""


def alpha_passable(subject: Subject) -> Iterator[Finding]:
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
        notes=(found.range_note, subject.settings.shown("alpha_is")),
        fix=fix,
    )


def alpha_sorts(subject: Subject) -> Iterator[Finding]:
    """`alpha` leaves some trajectories out, and is on the scale of the rewards."""
    found = _bars(subject)
    if found is None or found.alpha is None:
        return
    if found.alpha < found.low or (found.alpha == found.low and found.alpha_is == "at_least"):
        yield Finding(
            message=f"an alpha of {found.alpha:g} counts every trajectory as good",
            path="alpha",
            notes=(found.range_note, subject.settings.shown("alpha_is")),
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


def beta_passable(subject: Subject) -> Iterator[Finding]:
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
        notes=(found.range_note, settings.shown("beta_is")),
        fix=fix,
    )


def trees_of_stage(subject: Subject) -> Iterator[Finding]:
    """The trees are of the stage's environment, and of the actor that judges them."""
    stage, module = subject.stage, subject.module
    searches = [
        found
        for name in stage.inputs.get("trees", ())
        if (found := module.stages.get(name)) is not None and found.kind == "search"
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
    policies = stage.inputs.get("policy", ())
    actors = dict.fromkeys(name for each in searches for name in each.inputs.get("policy", ()))
    judged = "revision" in subject.settings.texts("parts")
    if judged and policies and actors and policies[0] not in actors:
        yield Finding(
            message=f"`{policies[0]}` judges what {listed(actors)} did",
            path="policy",
            notes=("in Agent-R the actor judges itself, so that it learns what it can notice",),
            fix=f"set policy: {next(iter(actors))}, unless another judge is meant",
        )


def marks_heeded(subject: Subject) -> Iterator[Finding]:
    """A training on replies that are marked as not trained says whether it heeds the marks."""
    if subject.settings.given("loss_on"):
        return
    for name in subject.stage.inputs.get("data", ()):
        source = _marked(name, subject)
        if source is None:
            continue
        through = "" if source.id == name else f" (through `{name}`)"
        yield Finding(
            message=f"bad replies of `{source.id}`{through} would be trained like good ones",
            path="data",
            notes=(
                subject.settings.shown("loss_on"),
                settings_of(source, subject.table).shown("parts"),
            ),
            fix="set `loss_on: marked` to train signals and good replies alone (Agent-R, "
            "equation 6), or `loss_on: all_replies` to train all, as its released code does",
        )
        return


def _marked(name: str, subject: Subject) -> Stage | None:
    """The stage that marks replies and that the data of a stage are from, directly or mixed."""
    waiting: list[str] = [name]
    seen: set[str] = set()
    while waiting:
        found = subject.module.stages.get(waiting.pop())
        if found is None or found.id in seen:
            continue
        seen.add(found.id)
        if found.kind == "revise":
            if set(settings_of(found, subject.table).texts("parts")) & set(_SPLICED):
                return found
        elif found.kind == "mix":
            for role in ("general", "agent"):
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


def _bars(subject: Subject) -> _Bars | None:
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
    Rule(code="AGC690", kinds=("revise",), check=alpha_passable),
    Rule(code="AGC691", kinds=("revise",), check=beta_passable),
    Rule(code="AGC692", kinds=("revise",), check=alpha_sorts, severity="warning"),
    Rule(code="AGC693", kinds=("sft",), check=marks_heeded),
    Rule(code="AGC694", kinds=("revise",), check=trees_of_stage, severity="warning"),
)
