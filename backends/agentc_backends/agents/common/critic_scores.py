"""How a critic and its reference score candidates for a reply (SWEET-RL, arXiv 2503.15478, equation
3): the prompts that both read, the log-probabilities of the candidates' tokens by a served model,
and the advantage, the critic's mean less the reference's. Token ids go to the server: a text might
be split into other tokens.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast

from agentc.program.artifact_files import CRITIC_FILE
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import Message
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError
from agentc_backends.data.chat.formats import RowsError
from agentc_backends.data.chat.hidden_texts import FIRST_MESSAGE, HiddenTexts

Row: TypeAlias = Mapping[str, Any]
Normalisation: TypeAlias = Literal["turn", "trajectory", "none"]


def advantage(critic: Row, reference: Row, normalisation: Normalisation) -> float:
    """Of scores `{"sum", "n"}`. Of one turn the means by turn and by trajectory are the same; with
    `none` the sums are compared."""
    if normalisation == "none":
        return float(critic["sum"] - reference["sum"])
    return float(critic["sum"] / critic["n"] - reference["sum"] / reference["n"])


@dataclass(frozen=True, slots=True)
class CandidatePrompt:
    """What a model reads before a candidate: messages, and a text before their first token."""

    messages: Sequence[Message]
    opening: str = ""


PromptContext: TypeAlias = Literal["history", "privileged"]


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
    notes = json.loads((folder / CRITIC_FILE).read_text(encoding="utf-8"))
    if notes["parameterisation"] != ("value_head" if head else "log_ratio"):
        raise FatalError(
            f"the critic's parameterisation is {notes['parameterisation']}: "
            + (
                "it has no head to score with; rank with rank.advantage"
                if head
                else "its score is no ratio of log-probabilities, which are all that a server "
                "returns; rank with rank.value_head"
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


def critic_prompts(critic: CriticNotes, hidden: Sequence[Path]) -> Callable[[Row], CandidatePrompt]:
    """Makes the prompt of a turn for the critic: behind hidden texts exactly if it was trained
    behind them. Raises FatalError, as `candidate_prompts` does."""
    if critic.template is not None and not hidden:
        raise FatalError(
            "the critic was trained behind hidden texts, and the stage has none: give it the "
            "`privileged` that the critic had"
        )
    return candidate_prompts("privileged" if hidden else "history", critic, hidden)


def candidate_prompts(
    sees: PromptContext, critic: CriticNotes | None, hidden: Sequence[Path]
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

    def prompt_of(turn: Row) -> CandidatePrompt:
        try:
            return CandidatePrompt(*texts.place(template_at, turn["task_id"], turn["prompt"]))
        except RowsError as error:
            raise FatalError(str(error)) from error

    return prompt_of


Span: TypeAlias = Literal["reply", "published"]


class Scorer(Protocol):
    """A served model that says what it thinks of given tokens (`connect.ChatPolicy`)."""

    async def tokenize(self, messages: Sequence[Message], *, opened: bool = True) -> list[int]: ...

    async def spell(self, text: str) -> list[int]: ...

    async def score(self, ids: Sequence[int], affinity: str) -> list[float | None]: ...


async def score_turn(
    turn: Row, prompt: CandidatePrompt, span: Span, scorer: Scorer
) -> dict[str, Any]:
    """The row of one turn, whose `prompt` the scorer is shown: `{"sum", "n"}` of each candidate.
    Raises InfrastructureError, FatalError."""
    affinity = turn["id"]
    asked: list[asyncio.Future[dict[str, Any]]] = []
    try:
        before = await scorer.tokenize(prompt.messages)
        header = 0 if span == "reply" else await _header(prompt.messages, before, scorer)
        if prompt.opening:
            before = [*await scorer.spell(prompt.opening), *before]
        asked = [
            asyncio.ensure_future(_score(each, before, header, span, scorer, affinity))
            for each in turn["candidates"]
        ]
        scores = await asyncio.gather(*asked)
    except ContextOverflowError:
        return score_row(turn, "overflow")
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    tokens = len(before) * len(scores) + sum(len(each["tokens"]) for each in turn["candidates"])
    return {**score_row(turn, "scored"), "scores": list(scores), "tokens": tokens}


def score_row(turn: Row, end: str, error: InfrastructureError | None = None) -> dict[str, Any]:
    """The row of a turn before it has scores."""
    failed = {} if error is None else {"error": str(error)}
    named = {"id": turn["id"], "task_id": turn["task_id"], "end": end}
    return {**named, "scores": [], "tokens": 0, **failed}


async def _header(prompt: Sequence[Message], before: Sequence[int], scorer: Scorer) -> int:
    """How many tokens at the end of a prompt open the agent's message."""
    closed = await scorer.tokenize(prompt, opened=False)
    if list(before[: len(closed)]) != closed:
        raise FatalError(
            "the chat template writes a prompt in another way when a reply is to follow: "
            "`span: published` has no header that it could take in"
        )
    return len(before) - len(closed)


async def _score(
    candidate: Row,
    before: Sequence[int],
    header: int,
    span: Span,
    scorer: Scorer,
    affinity: str,
) -> dict[str, Any]:
    ids = [*before, *candidate["tokens"]]
    scores = await scorer.score(ids, affinity)
    if len(scores) != len(ids):
        raise FatalError(f"the server scored {len(scores)} tokens where it was given {len(ids)}")
    end = len(ids)
    # One that a limit or a stop text ended has no token of its end.
    if span == "published" and not (candidate.get("cut") or candidate.get("stopped_by")):
        end -= 1
    taken = scores[len(before) - header : end]
    # Only the first token of all has no score, and a prompt comes before.
    found = [0.0 if each is None else each for each in taken]
    return {"sum": math.fsum(found), "n": len(found)}
