"""Log-probabilities of a few trained rows by the model as it is at the end of its training, and how
a few prompts were tokenised: `data/models/scored_rows.py` says what they are for. Each trainer
brings its own forward pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agentc_backends.data.chat.formats import FormatError, Message
from agentc_backends.data.chat.rows import Side
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.data.models.scored_rows import EncodedPrompt, ScoredRow, ScoredRows

COUNT, TOKENS, TRAINED = 8, 512, 64
"""Rows that are scored, and prompts; of each row its first tokens, and where these hold no trained
one, so many from the first that is."""
_DIGITS = 5
"""More would tell apart what differs by the last bit alone."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ScoringSample:
    """What of its data a training leaves beside its checkpoint."""

    sides: tuple[Side, ...]
    prompts: tuple[EncodedPrompt, ...]


def sample_of(
    encoder: Encoder, sides: Sequence[Side], prompts: Sequence[Sequence[Message]]
) -> ScoringSample:
    """Some of these token rows and of these prompts, evenly spread, as far as they are compared."""
    waiting = [prompt for prompt in prompts if prompt and prompt[-1]["role"] != "assistant"]
    return ScoringSample(
        tuple(map(_beginning, _spread(sides))),
        tuple(_encoded(encoder, _spread(waiting))),
    )


def score_rows(
    sample: ScoringSample, dtype: str, log_probs: Callable[[Side], Sequence[float]]
) -> ScoredRows:
    """The rows with what `log_probs` says of each token after the first, computed in `dtype`. Every
    process that holds a part of the model has to call it, with the same rows."""
    rows = []
    for side in sample.sides:
        kept: list[float | None] = [None]
        for value, trained in zip(log_probs(side), side.trained[1:], strict=True):
            kept.append(round(value, _DIGITS) if trained and math.isfinite(value) else None)
        rows.append(ScoredRow(side.ids, kept))
    return ScoredRows(dtype, tuple(rows), sample.prompts)


def chosen_log_probs(logits: Any, ids: Any) -> list[float]:
    """Of a row's tokens after the first, from the logits (length, vocabulary) of the row."""
    kept = logits[:-1].float()
    chosen = kept.gather(1, ids[1:].unsqueeze(1)).squeeze(1)
    found: list[float] = (chosen - kept.logsumexp(dim=-1)).tolist()
    return found


def _spread(items: Sequence[Item]) -> list[Item]:
    count = min(COUNT, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def _beginning(side: Side) -> Side:
    # The first token is never predicted.
    first = side.trained.index(True, 1)
    end = TOKENS if first < TOKENS else first + TRAINED
    return Side(side.ids[:end], side.trained[:end])


def _encoded(encoder: Encoder, prompts: Sequence[Sequence[Message]]) -> Iterator[EncodedPrompt]:
    for prompt in prompts:
        messages = [{"role": each["role"], "content": each["content"]} for each in prompt]
        try:
            yield EncodedPrompt(messages, encoder.encode_prompt(messages))
        except FormatError:
            continue  # a template that writes whole conversations alone
