"""Rules about measures of existing episodes: their environment, and what is measured of them."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.artifacts import SEARCH_TREES
from agentc.kinds.interaction import PREFIXES
from agentc.kinds.table import makers
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place, quoted
from agentc.text import counted

_ACTION_RULES = ("action_span", "action_space", "no_action")


def played_by(subject: StageContext, evaluation: Stage) -> Stage:
    """The stage that played the episodes of an evaluation: itself, or what it measures."""
    sources = evaluation.inputs.get("of", ())
    return subject.module.stages.get(sources[0], evaluation) if sources else evaluation


def measured_where_played(subject: StageContext) -> Iterator[Finding]:
    """Episodes are measured in the environment that they were played in."""
    played = played_by(subject, subject.stage)
    ours, theirs = (each.uses.get("environment") for each in (subject.stage, played))
    if played is subject.stage or ours == theirs or theirs is None:
        return
    yield Finding(
        message=f"`{subject.stage.id}` measures by the rewards of `{ours}`, but `{played.id}` was "
        f"played in `{theirs}`",
        path="environment",
        fix=f"set `environment: {theirs}`",
    )


def answers_of_trees(subject: StageContext) -> Iterator[Finding]:
    """Only a search tree has an answer to choose."""
    kind = kind_named(played_by(subject, subject.stage).kind)
    if not subject.settings.is_set("answer") or kind is None or kind.produces == SEARCH_TREES:
        return
    yield Finding(
        message=f"`answer` chooses a path of a tree, and a stage of kind `{kind.name}` makes none",
        path="answer",
        fix="remove `answer`, or measure a search",
    )


def enough_attempts(subject: StageContext) -> Iterator[Finding]:
    """The best of k attempts is told from k attempts at a task, or more."""
    played = played_by(subject, subject.stage)
    draws = subject.settings.get("best_of")
    most = (
        max((k for k in draws if isinstance(k, int)), default=0) if isinstance(draws, list) else 0
    )
    # Behind prefixes a task has as many episodes, or trees, as it has prefixes.
    if played is subject.stage or most <= 1 or played.inputs.get(PREFIXES.name):
        return
    attempts = subject.of_stages[played.id].integer("attempts") or 1
    if most <= attempts:
        return
    tree = played.kind in makers(SEARCH_TREES)
    yield Finding(
        message=f"the best of {most} cannot be determined from "
        + (f"the one tree that `{played.id}` grows" if tree else counted(attempts, "attempt"))
        + " at a task",
        path="best_of",
        notes=() if tree else (subject.of_stages[played.id].note("attempts"),),
        fix="remove it" if tree else f"set attempts: {most} in `{played.id}`, or less here",
    )


def loops_of_the_same_actions(subject: StageContext) -> Iterator[Finding]:
    """Loops are of the actions that the environment was given, so replies are read alike."""
    stage, settings = subject.stage, subject.settings
    played = played_by(subject, stage)
    if settings.get("loops") is None or played is stage or played.kind in makers(SEARCH_TREES):
        return
    theirs = subject.of_stages[played.id]
    wanted = {name: theirs.get(name) for name in _ACTION_RULES if theirs.declares(name)}
    prompt = subject.prompt(played)
    wanted["reply_format"] = "react" if prompt is None else prompt.reply_format
    for name, value in wanted.items():
        if not settings.declares(name) or settings.get(name) == value:
            continue
        yield Finding(
            message=f"`{stage.id}` reads actions by another `{name}` than `{played.id}` did, so "
            "that its loops would be of other actions",
            path=name if settings.is_set(name) else "loops",
            notes=(
                f"`{name}` is {quoted(settings.get(name))} here",
                f"it is {quoted(value)} in `{played.id}` ({place(played, name)})",
            ),
            fix=f"set `options: {{{name}: {value}}}` here",
        )
        return


MEASURES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC683",
            "measured in another environment",
            "What a reward is worth, and which one is a success, the environment says in which "
            "the episodes were played.",
        ),
        kinds=("measure",),
        check=measured_where_played,
    ),
    Rule(
        code=Code(
            "AGC684",
            "an answer of no tree",
            "The answer of a search is one of the paths of its tree, and `answer` says which. A "
            "trajectory is measured as it is.",
        ),
        kinds=("measure",),
        check=answers_of_trees,
    ),
    Rule(
        code=Code(
            "AGC686",
            "the best of more attempts than there are",
            "`best_of(k)` and `pass_at(k)` are estimated from k attempts at each task, or from "
            "more. With fewer no task would have such a score.",
        ),
        kinds=("measure",),
        check=enough_attempts,
    ),
    Rule(
        code=Code(
            "AGC687",
            "loops of other actions",
            "Trajectories hold replies, and the stage that played them defines which part of one "
            "is its action. A measure that reads them otherwise would count loops of actions that "
            "no environment was given.",
        ),
        kinds=("measure",),
        check=loops_of_the_same_actions,
    ),
)
