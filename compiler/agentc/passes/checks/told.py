"""Whether a stage is given the hidden texts of the tasks that its episodes are of: what the rules
on critics, and those on stages that rank with them, have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.ir.module import Stage
from agentc.passes.checks.rule import Finding
from agentc.passes.checks.subject import StageContext, place, quoted
from agentc.passes.checks.surroundings import split_of


def untold_tasks(
    subject: StageContext, episodes: Sequence[Stage], which: str = ""
) -> Iterator[Finding]:
    """The first of `episodes` whose tasks are of another environment or split than the stage's
    `privileged`, or more of them. `which` says what the episodes are to it."""
    [told, *_] = [*subject.stage.inputs.get("privileged", ()), ""]
    hidden = subject.module.stages.get(told)
    for played in episodes if hidden is not None else ():
        assert hidden is not None
        if split_of(played) is None:
            continue
        spans = tuple(each.spans["split"] for each in (hidden, played) if "split" in each.spans)
        who = f"`{played.id}`" + (f", {which}" if which else " ")
        if _tasks(hidden) != _tasks(played):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of {_shown(hidden)}, but "
                f"{who}takes {_shown(played)}",
                path="privileged",
                notes=(
                    f"`{played.id}` takes {_shown(played)} ({place(played, 'split')})",
                    f"`{hidden.id}`: {place(hidden, 'split')}",
                ),
                fix="take both from the same split of the same environment",
                rests_on=spans,
            )
            return
        most, number = _limit(hidden), _limit(played)
        if most is not None and (number is None or most < number):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of the first {most} tasks, but "
                f"{who}plays " + ("all of them" if number is None else f"the first {number}"),
                path="privileged",
                notes=(f"`{hidden.id}`: {place(hidden, 'limit')}",),
                fix=f"leave the `limit` of `{hidden.id}` out",
            )
            return


def _tasks(stage: Stage) -> tuple[str | None, object]:
    return stage.uses.get("environment"), split_of(stage)


def _shown(stage: Stage) -> str:
    return f"the split {quoted(split_of(stage))} of `{stage.uses.get('environment')}`"


def _limit(stage: Stage) -> int | None:
    value = stage.fields.get("limit")
    return value.json if value is not None and isinstance(value.json, int) else None
