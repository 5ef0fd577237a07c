"""Rules about episodes that go on from other trajectories, and pairs of such episodes."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.groups import kinds_where
from agentc.kinds.prefix import PREFIXES
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place, quoted
from agentc.passes.checks.surroundings import split_of

_CONTINUING = kinds_where(lambda kind: kind.role(PREFIXES.name) is not None)


def prefixes_of_its_tasks(subject: StageContext) -> Iterator[Finding]:
    """Trajectories that are gone on from are of the stage's environment and split."""
    ours = _tasks(subject.stage)
    for number, source in _sources(subject):
        theirs = _tasks(source)
        if theirs == ours or None in (*ours, *theirs):
            continue
        yield Finding(
            message=f"`{subject.stage.id}` has no task in common with `{source.id}`, whose "
            "trajectories it goes on from",
            path=f"{PREFIXES.name}.{number}",
            notes=(
                f"`{source.id}` takes the split {quoted(theirs[1])} of `{theirs[0]}` "
                f"({place(source, 'split')})",
                f"`{subject.stage.id}` takes the split {quoted(ours[1])} of `{ours[0]}` "
                f"({place(subject.stage, 'split')})",
            ),
            fix="take both from the same split of the same environment",
        )


def prefixes_read_alike(subject: StageContext) -> Iterator[Finding]:
    """Trajectories that are gone on from have the form of replies and observations of the stage."""
    ours = subject.prompt()
    for number, source in _sources(subject):
        theirs = subject.prompt(source)
        if ours is None or theirs is None:
            continue
        for name in ("reply_format", "observation_prefix", "output_marker", "memory"):
            mine, other = getattr(ours, name), getattr(theirs, name)
            if mine == other:
                continue
            yield Finding(
                message=f"`{source.id}` has another `{name}` than `{subject.stage.id}`, which goes "
                "on from its trajectories",
                path=f"{PREFIXES.name}.{number}",
                notes=(
                    f"prompt `{theirs.name}` of `{source.id}`: {quoted(other)}",
                    f"prompt `{ours.name}` of `{subject.stage.id}`: {quoted(mine)}",
                    "a prefix that reads differently when it is played again is no episode",
                ),
                fix="give both stages one prompt, or prompts that differ in the instruction alone",
            )
            return


def contrast_has_prefixes(subject: StageContext) -> Iterator[Finding]:
    """Where a step is contrasted, some of the rollouts go on from prefixes."""
    contrast = subject.settings.text("contrast")
    stages = [subject.module.stages.get(name) for name in subject.stage.inputs.get("rollouts", ())]
    if contrast == "trajectory" or not stages or None in stages:
        return
    if any(stage is not None and stage.inputs.get(PREFIXES.name) for stage in stages):
        return
    yield Finding(
        message=f"`contrast: {contrast}` looks at what stands behind a prefix, and none of the "
        "rollouts has prefixes",
        path="contrast",
        notes=("trajectories without a prefix are contrasted whole",),
        fix="give a rollout `prefixes`, or remove `contrast`",
    )


def _sources(subject: StageContext) -> Iterator[tuple[int, Stage]]:
    for number, name in enumerate(subject.stage.inputs.get(PREFIXES.name, ())):
        stage = subject.module.stages.get(name)
        if stage is not None:
            yield number, stage


def _tasks(stage: Stage) -> tuple[str | None, str | None]:
    split = split_of(stage)
    return stage.uses.get("environment"), None if split is None else str(split)


CONTINUATIONS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC680",
            "prefixes of other tasks",
            "An episode that goes on from a trajectory is an episode of the same task. Those of "
            "another split or environment are left out, so that none would be played.",
        ),
        kinds=_CONTINUING,
        check=prefixes_of_its_tasks,
    ),
    Rule(
        code=Code(
            "AGC681",
            "prefixes that read differently",
            "The turns of a prefix are played again, and each observation is held against the "
            "one in the trajectory. Under a prompt with another form none would be the same, and "
            "the policy would see two forms in one conversation.",
        ),
        kinds=_CONTINUING,
        check=prefixes_read_alike,
    ),
    Rule(
        code=Code(
            "AGC682",
            "nothing behind a prefix",
            "`contrast: step` and `contrast: rest` pair what trajectories did behind the prefix "
            "that they share. Without `prefixes` in any of the rollouts, all pairs are of whole "
            "trajectories.",
        ),
        kinds=("pair",),
        check=contrast_has_prefixes,
    ),
)
