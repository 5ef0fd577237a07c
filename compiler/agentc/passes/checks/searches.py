"""Rules about tree search, and what becomes of its trees."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Subject

_SPLICED = ("revision", "direct")


def paths_within_turns(subject: Subject) -> Iterator[Finding]:
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


def trees_branch(subject: Subject) -> Iterator[Finding]:
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


def revised_under_their_prompt(subject: Subject) -> Iterator[Finding]:
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
    Rule(code="AGC695", kinds=("search",), check=paths_within_turns, severity="warning"),
    Rule(code="AGC696", kinds=("revise",), check=trees_branch),
    Rule(code="AGC697", kinds=("revise",), check=revised_under_their_prompt, severity="warning"),
)
