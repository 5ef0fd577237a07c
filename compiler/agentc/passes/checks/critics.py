"""Rules about critics: hidden texts that are of the tasks that they learn from."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.artifacts import PRIVILEGED_INFORMATION
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place, quoted
from agentc.passes.checks.surroundings import collected_by, split_of

_TOLD = kinds_where(lambda kind: kind.trains and kind.reads(PRIVILEGED_INFORMATION))


def hidden_texts_of_the_tasks(subject: StageContext) -> Iterator[Finding]:
    """The episodes behind a critic's data are of tasks whose hidden texts it is given."""
    stages = subject.module.stages
    [told, *_] = [*subject.stage.inputs.get("privileged", ()), ""]
    hidden = stages.get(told)
    if hidden is None:
        return
    for episodes in collected_by(subject.stage.inputs.get("data", ()), subject.module):
        if split_of(episodes) is None:
            continue
        where = f"`{episodes.id}` takes {_tasks(episodes)} ({place(episodes, 'split')})"
        if (hidden.uses.get("environment"), split_of(hidden)) != (
            episodes.uses.get("environment"),
            split_of(episodes),
        ):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of {_tasks(hidden)}, but "
                f"`{episodes.id}`, which the critic learns from, takes {_tasks(episodes)}",
                path="privileged",
                notes=(where, f"`{hidden.id}`: {place(hidden, 'split')}"),
                fix="take both from the same split of the same environment",
            )
            return
        most, played = _limit(hidden), _limit(episodes)
        if most is not None and (played is None or most < played):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of the first {most} tasks, but "
                f"`{episodes.id}`, which the critic learns from, plays "
                + ("all of them" if played is None else f"the first {played}"),
                path="privileged",
                notes=(f"`{hidden.id}`: {place(hidden, 'limit')}",),
                fix=f"leave the `limit` of `{hidden.id}` out",
            )
            return


def _tasks(stage: Stage) -> str:
    return f"the split {quoted(split_of(stage))} of `{stage.uses.get('environment')}`"


def _limit(stage: Stage) -> int | None:
    value = stage.fields.get("limit")
    return value.json if value is not None and isinstance(value.json, int) else None


CRITICS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC689",
            "hidden texts of other tasks",
            "A critic reads the hidden text of each task that its pairs are of. Where the "
            "`privileged` stage collected them on another split, or on fewer tasks, there is none.",
        ),
        kinds=_TOLD,
        check=hidden_texts_of_the_tasks,
    ),
)
