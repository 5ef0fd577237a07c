"""Rules about the rewards of a pair: what the environment pays can make one. The other rules about
pairs are in `preferences.py`."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import EnvironmentBackend
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.artifacts import TRAJECTORIES
from agentc.kinds.groups import makers
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext


def margin_within_rewards(subject: StageContext) -> Iterator[Finding]:
    """Two rewards of the environment can differ by more than `margin`."""
    margin, known = subject.settings.number("margin"), _environments(subject)
    if margin is None or not known:
        return
    widest = max(known, key=lambda each: each.reward_range[1] - each.reward_range[0])
    low, high = widest.reward_range
    inclusive = subject.settings.text("margin_is") == "at_least"
    if margin < high - low or (inclusive and margin == high - low):
        return
    yield Finding(
        message="no two rewards differ by "
        + ("at least " if inclusive else "more than ")
        + f"the margin of {margin:g}, so there are no pairs",
        path="margin",
        notes=(
            f"rewards of {widest.id} run from {low:g} to {high:g}: they differ by {high - low:g} "
            "at most",
        ),
        fix=f"set margin {'to' if inclusive else 'below'} {high - low:g}"
        + (" or less" if inclusive else "; 0 pairs whatever differs"),
    )


def bar_within_rewards(subject: StageContext) -> Iterator[Finding]:
    """Some reward of the environment reaches `chosen_at_least`, and not every one does."""
    bar, known = subject.settings.number("chosen_at_least"), _environments(subject)
    if bar is None or not known:
        return
    low = min(each.reward_range[0] for each in known)
    high = max(each.reward_range[1] for each in known)
    if low < bar <= high:
        return
    names = " and ".join(sorted({each.id for each in known}))
    yield Finding(
        message=f"every reward reaches chosen_at_least {bar:g}, so that it leaves nothing out"
        if bar <= low
        else f"no reward reaches chosen_at_least {bar:g}, so there are no pairs",
        path="chosen_at_least",
        severity="warning" if bar <= low else None,
        notes=(f"rewards of {names} run from {low:g} to {high:g}",),
        fix="remove it" if bar <= low else f"set chosen_at_least to {high:g} or less",
    )


def _environments(subject: StageContext) -> list[EnvironmentBackend]:
    """Where the explored episodes were played; none where one of these is not known."""
    stages = collecting_inputs(subject, "rollouts")
    found = [subject.environment(rollout) for rollout in stages]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else []


def collecting_inputs(subject: StageContext, role: str) -> list[Stage]:
    """The collecting stages of a role; none where one is of another kind."""
    found = [subject.module.stages.get(name) for name in subject.stage.inputs.get(role, ())]
    stages = [each for each in found if each is not None and each.kind in makers(TRAJECTORIES)]
    return stages if len(stages) == len(found) else []


PAIR_REWARDS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC650",
            "a margin that no pair reaches",
            "Two trajectories make a pair when their rewards differ by more than `margin`; the "
            "environment's rewards never do.",
        ),
        kinds=("pair",),
        check=margin_within_rewards,
    ),
    Rule(
        code=Code(
            "AGC665",
            "a bar that no reward is at, or every one",
            "`chosen_at_least` says how good a trajectory has to be to be chosen. Above the "
            "environment's rewards nothing is ever chosen, and at the lowest of them everything.",
        ),
        kinds=("pair",),
        check=bar_within_rewards,
    ),
)
