"""Rules about rounds: what a repeat changes from one round to the next."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds import KINDS
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext


def rounds_differ(subject: StageContext) -> Iterator[Finding]:
    """Round 2 of a repeat does something else than round 1."""
    stage = subject.stage
    repeat, mark, _ = stage.id.partition(".2.")
    if stage.round != 2 or not mark:
        return
    second = subject.around.second_rounds.get(repeat, ())
    if not second or second[0] is not stage:
        return  # said once for each repeat
    for other in second:
        first = subject.module.stages.get(other.id.replace(".2.", ".1.", 1))
        if first is None or _work(first, f"{repeat}.1.") != _work(other, f"{repeat}.2."):
            return
    yield Finding(
        message=f"round 2 of `{repeat}` does exactly what round 1 does",
        path="",
        notes=("no stage of it takes anything from round 1, and no setting depends on `round`",),
        fix="`carry` a stage from each round to the next, or leave `repeat` out",
    )


def _work(stage: Stage, own: str) -> object:
    """What a stage of a round does, comparable with the same stage of another round."""
    return (
        stage.backend,
        {name: value.json for name, value in stage.fields.items()},
        {name: value.json for name, value in stage.options.items()},
        {role: [name.removeprefix(own) for name in names] for role, names in stage.inputs.items()},
        stage.uses,
    )


ROUNDS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC658",
            "rounds that are all the same",
            "Nothing is carried from one round to the next and nothing depends on the round, so "
            "every round gives the same result. Most often `carry` is missing, or its name is not "
            "used.",
        ),
        kinds=tuple(kind.name for kind in KINDS),
        check=rounds_differ,
        severity="warning",
    ),
)
