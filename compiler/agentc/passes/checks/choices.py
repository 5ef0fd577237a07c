"""Rules about best-of-N at test time: a rollout, or an evaluation, that draws several candidates
for each turn and goes on with the one that a critic thinks best.

Neighbour: `turns.py`, about candidates that are kept and ranked; what is said of both stands there.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.kinds.artifacts import CRITIC_CHECKPOINT
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext
from agentc.passes.checks.told import untold_tasks
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
    yield from untold_tasks(subject, [subject.stage])


def _heads(subject: StageContext) -> list[Settings]:
    """The critics that are heads."""
    found = [subject.of_stages[critic.id] for critic in critics_of(subject)]
    return [each for each in found if each.text("parameterisation") == "value_head"]


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
