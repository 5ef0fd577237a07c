"""Rules about critics: hidden texts that are of the tasks that they learn from, and rows that hold
whole episodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentc.diagnostics.codes.code import Code
from agentc.kinds.artifacts import PRIVILEGED_INFORMATION
from agentc.kinds.groups import ACTING, kinds_where
from agentc.passes.checks.lengths import served_window
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext
from agentc.passes.checks.surroundings import collected_by
from agentc.passes.checks.told import untold_tasks
from agentc.text import counted

_TOLD = kinds_where(lambda kind: kind.trains and kind.reads(PRIVILEGED_INFORMATION))


def hidden_texts_of_the_tasks(subject: StageContext) -> Iterator[Finding]:
    """The episodes behind a critic's data are of tasks whose hidden texts it is given."""
    episodes = collected_by(subject.stage.inputs.get("data", ()), subject.module)
    yield from untold_tasks(subject, episodes, "which the critic learns from, ")


def rows_hold_an_episode(subject: StageContext) -> Iterator[Finding]:
    """A critic's rows (`max_length`) hold the longest episode that they may be of."""
    length = subject.settings.integer("max_length")
    for episodes in collected_by(subject.stage.inputs.get("data", ()), subject.module):
        settings, environment = subject.of_stages[episodes.id], subject.environment(episodes)
        reply = settings.integer("decode.max_tokens")
        turns = settings.integer("max_turns") or (environment and environment.max_turns)
        if episodes.kind not in ACTING or length is None or reply is None or not turns:
            continue
        window = served_window(replace(subject, stage=episodes, settings=settings))
        if length >= (turns * reply if window is None else min(turns * reply, window[0])):
            continue
        told = " and the hidden text" if subject.stage.inputs.get("privileged") else ""
        happens = {
            "error": "fails the stage",
            "drop": "leaves such a row out",
            "right": "cuts such a row, last turns first",
        }[subject.settings.text("truncation") or "error"]
        yield Finding(
            message=f"an episode of `{episodes.id}` may have {turns * reply} tokens of replies, "
            f"but a row of the critic holds {length}",
            path="max_length",
            notes=(
                f"{counted(turns, 'turn')} x {counted(reply, 'token')}; what the agent is told"
                f"{told} come{'' if told else 's'} on top",
                f"`truncation: {subject.settings.text('truncation')}` {happens}",
            ),
            fix=f"raise max_length, or lower decode.max_tokens of `{episodes.id}`",
        )
        return


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
    Rule(
        code=Code(
            "AGC669",
            "episodes longer than a critic's row",
            "A critic learns from whole episodes, behind the hidden text of their task. Of an "
            "episode that is longer than `max_length` the turns beyond it are lost, or the pair "
            "is; `truncation` says which, and the artifact counts them.",
        ),
        kinds=_TOLD,
        check=rows_hold_an_episode,
        severity="warning",
    ),
)
