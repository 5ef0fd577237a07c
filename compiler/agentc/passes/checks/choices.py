"""Rules about best-of-N at test time: a rollout, or an evaluation, that draws several candidates
for each turn and goes on with the one that a critic thinks best.

Neighbour: `turns.py`, about candidates that are kept and ranked; what is said of both stands there.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.artifacts import CRITIC_CHECKPOINT
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.critics import limit_of, tasks_shown
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext, place
from agentc.passes.checks.surroundings import split_of
from agentc.passes.checks.turns import HIDDEN_OF_OTHERS, RANKED_OTHERWISE, critics_of

_CHOOSING = kinds_where(lambda kind: kind.acts and kind.reads(CRITIC_CHECKPOINT))


def somebody_chooses(subject: StageContext) -> Iterator[Finding]:
    """Of several candidates a critic chooses, beside its reference."""
    inputs, count = subject.stage.inputs, subject.settings.integer("candidates")
    if count is None or count == 1:
        return
    if not inputs.get("critic"):
        yield Finding(
            message=f"of {count} candidates for each turn nobody chooses one",
            path="candidates",
            fix="name the `critic` that does, and its `reference`; for episodes apart set "
            "`attempts`",
        )
    elif not inputs.get("reference") and not any(_heads(subject)):
        against = [
            name
            for critic in critics_of(subject)
            for name in critic.inputs.get("reference") or critic.inputs.get("model", ())
        ]
        yield Finding(
            message="the critic's log-probabilities are compared with a reference's, and "
            f"`{subject.stage.id}` names none",
            path="critic",
            fix=f"set `reference: {against[0]}`" if against else "name its `reference`",
        )


def chosen_by_log_ratio(subject: StageContext) -> Iterator[Finding]:
    """Who chooses among candidates is a language model, which a server can be asked about."""
    if (subject.settings.integer("candidates") or 1) == 1:
        return
    for settings in _heads(subject):
        yield Finding(
            message=f"`{settings.name}` is a head on a model, which no model server holds: it "
            "cannot choose while episodes are played",
            path="critic",
            notes=(settings.shown("parameterisation"),),
            fix=f"train a critic with `parameterisation: log_ratio`, or rank with "
            f"`{settings.name}` what was drawn (`sample`, `rank`)",
        )


def hidden_of_tasks_played(subject: StageContext) -> Iterator[Finding]:
    """The hidden texts are of the tasks that are played."""
    stage = subject.stage
    for name in stage.inputs.get("privileged", ()):
        hidden = subject.module.stages.get(name)
        if hidden is None:
            continue
        if _where(hidden) != _where(stage):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of {tasks_shown(hidden)}, but "
                f"`{stage.id}` plays {tasks_shown(stage)}",
                path="privileged",
                notes=(f"they are named in {place(hidden, 'split')} and {place(stage, 'split')}",),
                fix="take both from the same split of the same environment",
            )
            continue
        most, played = limit_of(hidden), limit_of(stage)
        if most is not None and (played is None or most < played):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of the first {most} tasks, but "
                f"`{stage.id}` plays "
                + ("all of them" if played is None else f"the first {played}"),
                path="privileged",
                notes=(f"`{hidden.id}`: {place(hidden, 'limit')}",),
                fix=f"leave the `limit` of `{hidden.id}` out",
            )


def _heads(subject: StageContext) -> list[Settings]:
    """The critics that are heads."""
    found = [subject.of_stages[critic.id] for critic in critics_of(subject)]
    return [each for each in found if each.text("parameterisation") == "value_head"]


def _where(stage: Stage) -> tuple[object, object]:
    return stage.uses.get("environment"), split_of(stage)


CHOICES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC668",
            "candidates that nobody chooses from",
            "A rollout or an evaluation with `candidates` above 1 draws so many replies at each "
            "turn and goes on with the one that its `critic` thinks best, by what the critic has "
            "learned beyond its `reference`. Both have to be named.",
        ),
        kinds=_CHOOSING,
        check=somebody_chooses,
    ),
    Rule(code=RANKED_OTHERWISE, kinds=_CHOOSING, check=chosen_by_log_ratio),
    Rule(code=HIDDEN_OF_OTHERS, kinds=_CHOOSING, check=hidden_of_tasks_played),
)
