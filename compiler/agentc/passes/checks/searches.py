"""Rules about tree search, and about episodes that continue from a prefix of another trajectory."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.interaction import PREFIXES
from agentc.kinds.table import kinds_where
from agentc.passes.checks.module_analysis import split_of
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place, quoted

_SPLICED = ("revision", "direct")


def paths_within_turns(subject: StageContext) -> Iterator[Finding]:
    """Paths of a search (`depth` + 1 actions) are no longer than episodes of its environment."""
    environment, depth = subject.environment(), subject.settings.integer("depth")
    if environment is None or depth is None or depth + 1 <= environment.max_turns:
        return
    turns = environment.max_turns
    yield Finding(
        message=f"the search goes {depth + 1} actions deep, but episodes of {environment.id} have "
        f"{turns} turns",
        path="depth",
        notes=("no evaluation reaches what lies deeper",),
        fix=f"set depth to {turns - 1} or less" if turns > 1 else None,
    )


def trees_branch(subject: StageContext) -> Iterator[Finding]:
    """Trees that are to be spliced have branches: their search samples more than one child."""
    parts = subject.settings.texts("parts")
    spliced = [part for part in parts if part in _SPLICED]
    searches = [each for each in subject.producers("trees") if each.get("children") is not None]
    if not spliced or not searches:
        return
    if any((search.integer("children") or 1) > 1 for search in searches):
        return
    nothing_else = len(spliced) == len(parts)
    yield Finding(
        message=f"`{spliced[0]}` needs a bad and a good trajectory of one tree, but the trees of "
        f"`{searches[0].name}` have one path each",
        path="trees",
        severity="error" if nothing_else else "warning",
        notes=(searches[0].note("children"),),
        fix=f"set children of `{searches[0].name}` to 2 or more"
        + ("" if nothing_else else f", or leave `{spliced[0]}` out of parts"),
    )


def revised_under_their_prompt(subject: StageContext) -> Iterator[Finding]:
    """Trees are revised under the prompt that they were searched under."""
    prompt = subject.stage.uses.get("prompt", "")
    for name in subject.stage.inputs.get("trees", ()):
        search = subject.module.stages.get(name)
        if search is None or not set(subject.settings.texts("parts")) & set(_SPLICED):
            continue
        searched = search.uses.get("prompt", "")
        if searched == prompt:
            continue
        yield Finding(
            message=f"`{subject.stage.id}` writes its signal for "
            + (f"the prompt `{prompt}`" if prompt else "no prompt")
            + f", but `{name}` searched under "
            + (f"`{searched}`" if searched else "none"),
            path="prompt",
            notes=("the reply between the bad and the good part takes its form from the prompt",),
            fix=f"set `prompt: {searched}` here" if searched else "remove `prompt` here",
        )
        return


SEARCHES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC695",
            "a search deeper than any episode",
            "A path of a search has `depth` + 1 actions. Where the environment ends its episodes "
            "earlier, a policy would learn from attempts that it can never make.",
        ),
        kinds=("search",),
        check=paths_within_turns,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC696",
            "trees without branches",
            "A revision joins a bad and a good trajectory of one tree where they part. With one "
            "child at each node every tree is a single path.",
        ),
        kinds=("revise",),
        check=trees_branch,
    ),
    Rule(
        code=Code(
            "AGC697",
            "trees revised under another prompt",
            "The signal between the bad and the good part of a revision is written in the form "
            "that the prompt demands of replies. Under another prompt than the search's, it "
            "would be the only reply of its form.",
        ),
        kinds=("revise",),
        check=revised_under_their_prompt,
        severity="warning",
    ),
)


# Rules about episodes that continue other trajectories, and pairs of such episodes.

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
            "trajectories it continues from",
            path=f"{PREFIXES.name}.{number}",
            notes=(
                f"`{source.id}` takes the split {quoted(theirs[1])} of `{theirs[0]}` "
                f"({place(source, 'split')})",
                f"`{subject.stage.id}` takes the split {quoted(ours[1])} of `{ours[0]}` "
                f"({place(subject.stage, 'split')})",
            ),
            fix="take both from the same split of the same environment",
        )


def prefixes_prompted_as_the_stage(subject: StageContext) -> Iterator[Finding]:
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
                message=f"`{source.id}` has another `{name}` than `{subject.stage.id}`, which "
                "continues from its trajectories",
                path=f"{PREFIXES.name}.{number}",
                notes=(
                    f"prompt `{theirs.name}` of `{source.id}`: {quoted(other)}",
                    f"prompt `{ours.name}` of `{subject.stage.id}`: {quoted(mine)}",
                    "a prefix that reads differently when it is played again is no episode",
                ),
                fix="give both stages one prompt, or prompts that differ only in the instruction",
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
        message=f"`contrast: {contrast}` looks at what is behind a prefix, and none of the "
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
            "An episode that continues from a trajectory is an episode of the same task. Those of "
            "another split or environment are left out, so that none would be played.",
        ),
        kinds=_CONTINUING,
        check=prefixes_of_its_tasks,
    ),
    Rule(
        code=Code(
            "AGC681",
            "prefixes that read differently",
            "The turns of a prefix are played again, and each observation is compared with the "
            "one in the trajectory. Under a prompt with another form none would be the same, and "
            "the policy would see two forms in one conversation.",
        ),
        kinds=_CONTINUING,
        check=prefixes_prompted_as_the_stage,
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
