"""Rules about tree search, and what becomes of its trees."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext

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
        notes=(searches[0].shown("children"),),
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
            "that the prompt asks of replies. Under another prompt than the search's, it would be "
            "the only reply of its form.",
        ),
        kinds=("revise",),
        check=revised_under_their_prompt,
        severity="warning",
    ),
)
