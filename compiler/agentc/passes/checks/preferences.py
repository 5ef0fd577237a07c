"""Rules about preferences: pairs that can exist, and the DPO that learns from them. Those about
the rewards of a pair are in `pair_rewards.py`."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import EnvironmentBackend
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.artifacts import TRAJECTORIES
from agentc.kinds.interaction import PREFIXES
from agentc.kinds.table import COLLECTORS, PAIR_TRAINERS, makers
from agentc.passes.checks.module_analysis import split_of
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext, place, quoted
from agentc.text import counted

_LARGEST_BETA = 5.0
_LARGEST_MEAN_BETA = 50.0
"""With mean log-probabilities a ratio is that of one token, and useful betas are larger: SimPO
(arXiv 2405.14734) takes 2 to 10."""
_SMALLEST_BETA = 0.001
_FURTHEST = 1000
"""Rounds that are followed back when looking for the policy that explored."""


def plausible_beta(subject: StageContext) -> Iterator[Finding]:
    """`beta` is of a size at which DPO (arXiv 2305.18290, eq. 7) both moves and is held back."""
    beta = subject.settings.number("beta")
    mean = subject.settings.get("mean_log_prob") is True
    largest = _LARGEST_MEAN_BETA if mean else _LARGEST_BETA
    if beta is None or _SMALLEST_BETA <= beta <= largest:
        return
    if beta > largest:
        message = f"a beta of {beta:g} keeps the policy where the reference is"
    else:
        message = f"a beta of {beta:g} leaves the policy free to leave the reference"
    # sigmoid(4) = 0.98: from there on a pair hardly adds to the gradient.
    note = f"a pair is learned once its log-ratios differ by about 4 / {beta:g} = {4 / beta:g}"
    yield Finding(
        message=message,
        path="beta",
        expected="0.01 to 0.5 as a rule" + (" (2 to 10 on mean log-probabilities)" * mean),
        notes=(note,),
    )


def explored_by_policy(subject: StageContext) -> Iterator[Finding]:
    """Pairs come from the policy that is trained, not from one that it descends from."""
    trained = subject.stage.inputs.get("model", ())
    if not trained:
        return
    explorers: dict[str, Stage] = {}
    for pairs in subject.stage.inputs.get("data", ()):
        for rollout in _explored_by(pairs, subject):
            for policy in rollout.inputs.get("model", ()):
                explorers.setdefault(policy, rollout)
    if not explorers or trained[0] in explorers:
        return
    before = _ancestors(subject, trained[0])
    stale = [policy for policy in explorers if policy in before]
    if len(stale) < len(explorers):
        return
    rollout = explorers[stale[0]]
    explores = "explores with" if rollout.kind in COLLECTORS else "draws its candidates from"
    yield Finding(
        message=f"`{rollout.id}` {explores} `{stale[0]}`, but its pairs train `{trained[0]}`, "
        "which has learned since",
        path="model",
        at=rollout,
        notes=(f"`{subject.stage.id}` names its `model` in {place(subject.stage, 'model')}",),
        fix="name the same stage as `model` of both",
    )


def _explored_by(pairs: str, subject: StageContext) -> Iterator[Stage]:
    """The stages in which a policy acted for the pairs: the rollouts, or, of ranked turns, those
    that drew the candidates."""
    stages = subject.module.stages
    if pairs not in stages:
        return
    inputs = stages[pairs].inputs
    ranked = [stages[name] for name in inputs.get("turns", ()) if name in stages]
    names = [*inputs.get("rollouts", ())]
    names += [name for each in ranked for name in each.inputs.get("candidates", ())]
    yield from (stages[name] for name in names if name in stages)


def _ancestors(subject: StageContext, name: str) -> set[str]:
    found: set[str] = set()
    for _ in range(_FURTHEST):
        stage = subject.module.stages.get(name)
        parents = () if stage is None else stage.inputs.get("model", ())
        if not parents:
            break
        name = parents[0]
        found.add(name)
    return found


def tasks_in_common(subject: StageContext) -> Iterator[Finding]:
    """Explored trajectories are of tasks that the expert's are of."""
    experts, explored = collecting_inputs(subject, "expert"), collecting_inputs(subject, "rollouts")
    if subject.settings.text("sources") == "self" or not experts or not explored:
        return
    known = {_tasks(expert) for expert in experts}
    for number, rollout in enumerate(explored):
        if _tasks(rollout) in known:
            continue
        environment, split = _tasks(rollout)
        yield Finding(
            message=f"`{rollout.id}` and the expert have no task in common, so they make no pair",
            path=f"rollouts.{number}",
            notes=(
                f"`{rollout.id}` takes the split {quoted(split)} of `{environment}` "
                f"({place(rollout, 'split')})",
                *(
                    f"`{expert.id}` takes the split {quoted(split_of(expert))} of "
                    f"`{expert.uses.get('environment')}` ({place(expert, 'split')})"
                    for expert in experts
                ),
            ),
            fix="take both from the same split of the same environment",
            rests_on=tuple(
                each.spans["split"] for each in (rollout, *experts) if "split" in each.spans
            ),
        )


def expert_covers_tasks(subject: StageContext) -> Iterator[Finding]:
    """The expert's `limit` does not leave explored tasks without an expert."""
    experts, explored = collecting_inputs(subject, "expert"), collecting_inputs(subject, "rollouts")
    if subject.settings.text("sources") != "expert":
        return
    for number, rollout in enumerate(explored):
        shown = [e for e in experts if _tasks(e) == _tasks(rollout)]
        limits = [subject.of_stages[each.id].integer("limit") for each in shown]
        if not limits or None in limits:
            continue
        most = max(limit for limit in limits if limit is not None)
        own = subject.of_stages[rollout.id].integer("limit")
        if own is not None and own <= most:
            continue
        beyond = f"{own} - {most} = {own - most}" if own is not None else f"all but {most}"
        yield Finding(
            message=f"the expert solves {counted(most, 'task')}, `{rollout.id}` explores "
            f"{own if own is not None else 'the whole split'}",
            path=f"rollouts.{number}",
            notes=(
                f"the episodes of {beyond} tasks are paired with nothing",
                subject.of_stages[shown[0].id].note("limit"),
            ),
            fix="give both the same limit",
        )


def self_pairs_possible(subject: StageContext) -> Iterator[Finding]:
    """Where explored trajectories are paired among themselves, a task has several of a prompt."""
    if subject.settings.text("sources") != "self":
        return
    explored = [subject.of_stages[each.id] for each in collecting_inputs(subject, "rollouts")]
    same_prompt: dict[object, int] = {}
    for rollout in explored:
        for key in _prompt_seeds(rollout, subject):
            same_prompt[key] = same_prompt.get(key, 0) + 1
    if not same_prompt or max(same_prompt.values()) > 1:
        return
    several = any((each.integer("attempts") or 1) > 1 for each in explored)
    yield Finding(
        message="`sources: self` pairs episodes that began with the same prompt, and no two do",
        path="sources",
        notes=tuple(each.note("attempts") for each in explored),
        fix=("" if several else "set attempts of the rollout to 2 or more, and ")
        + "set `options: {prompt_per_attempt: false}` in the rollout",
    )


def empty_pairs_agreed(subject: StageContext) -> Iterator[Finding]:
    """A trainer that may get no pairs, and the stages that make them, agree on it."""
    keeps = subject.settings.text("on_empty") == "keep_model"
    makers_of_pairs = [
        each for each in subject.producers("data") if each.get("on_empty") is not None
    ]
    if not keeps:
        for pairs in makers_of_pairs:
            if pairs.text("on_empty") == "publish" and len(makers_of_pairs) == 1:
                yield Finding(
                    message=f"`{pairs.name}` may hand on a set without rows, which ends "
                    f"`{subject.stage.id}`",
                    path="on_empty",
                    notes=(pairs.note("on_empty"), subject.settings.note("on_empty")),
                    fix=f"set on_empty: keep_model in `{subject.stage.id}`",
                )
        return
    for pairs in makers_of_pairs:
        if pairs.text("on_empty") == "error":
            yield Finding(
                message=f"`{pairs.name}` fails when not one pair comes out, before "
                f"`{subject.stage.id}` could keep its model",
                path="on_empty",
                notes=(pairs.note("on_empty"), subject.settings.note("on_empty")),
                fix=f"set on_empty: publish in `{pairs.name}`",
            )


def _prompt_seeds(rollout: Settings, subject: StageContext) -> Iterator[object]:
    """What tells the prompts of a task's attempts apart, one item for each attempt."""
    stage = rollout.entry
    assert isinstance(stage, Stage)
    environment = subject.environment(stage)
    varied = environment is not None and "seed" in environment.capabilities
    # Behind a prefix all attempts have the prompt of its trajectory.
    whole = not stage.inputs.get(PREFIXES.name)
    own = varied and whole and rollout.get("prompt_per_attempt") is not False
    base = rollout.integer("prompt_seed") or 0
    for attempt in range(rollout.integer("attempts") or 1):
        yield _tasks(stage), (base + attempt if own else base) if varied else 0


def _tasks(stage: Stage) -> tuple[str, str]:
    return stage.uses.get("environment", ""), str(split_of(stage))


PREFERENCES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC664",
            "no pairs, and two opinions of it",
            "Where all explored episodes tie, there is nothing to train on. The stage that makes "
            "the pairs then fails, unless it may `publish` an empty set; the trainer fails on an "
            "empty set, unless it may hand its model on (`keep_model`). One without the other has "
            "no effect.",
        ),
        kinds=PAIR_TRAINERS,
        check=empty_pairs_agreed,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC647",
            "a beta of another size",
            "DPO's beta (arXiv 2305.18290, equation 7) scales the log-ratio of policy and "
            "reference. A large one stops learning at once, a tiny one lets the policy go "
            "anywhere.",
        ),
        kinds=("dpo",),
        check=plausible_beta,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC649",
            "pairs from an earlier policy",
            "The episodes were explored by a policy that the trained one descends from. In a "
            "repeat this happens when the rollout does not name the carried policy, and the "
            "experiment silently turns off-policy.",
        ),
        kinds=("dpo",),
        check=explored_by_policy,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC651",
            "expert and exploration share no task",
            "Pairs are made of trajectories of the same task. Different splits or environments "
            "have none in common.",
        ),
        kinds=("pair",),
        check=tasks_in_common,
    ),
    Rule(
        code=Code(
            "AGC652",
            "explored tasks without an expert",
            "The expert's `limit` is smaller than the rollout's, N episodes are played and "
            "then paired with nothing.",
        ),
        kinds=("pair",),
        check=expert_covers_tasks,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC653",
            "self-play without a second episode",
            "Explored trajectories are paired with each other only when they began with the same "
            "prompt; here each attempt gets a prompt of its own.",
        ),
        kinds=("pair",),
        check=self_pairs_possible,
    ),
)


# Rules about the rewards of a pair: what the environment pays can make one.


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
