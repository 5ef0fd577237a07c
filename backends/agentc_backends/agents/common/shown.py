"""What the two models of a ranking are shown before a candidate: the history as the policy saw it,
for a critic with hidden text behind the words that it was trained with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from agentc_backends.agents.common.advantage import Normalisation
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompt import Message
from agentc_backends.data.chat.formats import RowsError
from agentc_backends.data.chat.hidden_texts import FIRST_MESSAGE, HiddenTexts

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CandidatePrompt:
    """What a model reads before a candidate: messages, and a text before their first token."""

    messages: Sequence[Message]
    opening: str = ""


Sees: TypeAlias = Literal["history", "privileged"]
_CRITIC = "agentc_critic.json"


@dataclass(frozen=True, slots=True)
class CriticNotes:
    """What `agentc_critic.json` says of how a critic was trained."""

    parameterisation: str
    normalisation: Normalisation
    template: str | None
    reference: str
    pooling: str | None
    template_at: str = FIRST_MESSAGE


def read_critic(folder: Path, *, head: bool = False) -> CriticNotes:
    """The notes of a CriticCheckpoint. Raises FatalError where it is of another kind than the job
    ranks with: one with a `head`, or one that a server can tell the log-probabilities of."""
    notes = json.loads((folder / _CRITIC).read_text(encoding="utf-8"))
    if notes["parameterisation"] != ("value_head" if head else "log_ratio"):
        raise FatalError(
            f"the critic's parameterisation is {notes['parameterisation']}: "
            + (
                "it has no head to score with; rank with rank.advantage"
                if head
                else "its score is no ratio of log-probabilities, which are all that a server "
                "tells; rank with rank.value_head"
            )
        )
    return CriticNotes(
        notes["parameterisation"],
        cast(Normalisation, notes["normalisation"]),
        notes["template"],
        notes["reference"],
        notes.get("pooling"),
        notes.get("template_at", FIRST_MESSAGE),
    )


def shown_to_critic(
    critic: CriticNotes, hidden: Sequence[Path]
) -> Callable[[Row], CandidatePrompt]:
    """Makes the prompt of a turn for the critic: behind hidden texts exactly if it was trained
    behind them. Raises FatalError, as `prompts` does."""
    if critic.template is not None and not hidden:
        raise FatalError(
            "the critic was trained behind hidden texts, and the stage has none: give it the "
            "`privileged` that the critic had"
        )
    return prompts("privileged" if hidden else "history", critic, hidden)


def prompts(
    sees: Sees, critic: CriticNotes | None, hidden: Sequence[Path]
) -> Callable[[Row], CandidatePrompt]:
    """Makes the prompt of a turn. Hidden texts, of the folders `hidden`, are kept in memory, and
    nothing is written of them. Raises FatalError where a critic's words and the texts do not go
    together; the function does where a task has none."""
    if sees == "history" or critic is None:
        return lambda turn: CandidatePrompt(turn["prompt"])
    if critic.template is None:
        raise FatalError(
            "hidden texts are given, but the critic was trained without: leave `privileged` out"
        )
    texts, template_at = HiddenTexts(hidden, critic.template), critic.template_at

    def shown(turn: Row) -> CandidatePrompt:
        try:
            return CandidatePrompt(*texts.placed(template_at, turn["task_id"], turn["prompt"]))
        except RowsError as error:
            raise FatalError(str(error)) from error

    return shown
