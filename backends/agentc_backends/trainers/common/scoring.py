"""Log-probabilities of a few trained rows by the finished model, and the tokens of a few prompts,
which servers are compared with (`data/models/scored_rows.py`). Each trainer has its own forward
pass."""

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
"""The numbers of rows and prompts, of tokens of each row, and, where these have no trained one, of
tokens from the first trained one on."""
_DIGITS = 5
"""More would distinguish values that differ in the last bit."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ScoringSample:
    """The part of a training's data that is published with its checkpoint."""

    sides: tuple[Side, ...]
    prompts: tuple[EncodedPrompt, ...]


def sample_of(
    encoder: Encoder, sides: Sequence[Side], prompts: Sequence[Sequence[Message]]
) -> ScoringSample:
    """Some of these token rows and prompts, evenly spread, cut to what is compared."""
    waiting = [prompt for prompt in prompts if prompt and prompt[-1]["role"] != "assistant"]
    return ScoringSample(
        tuple(map(_cut, _spread(sides))),
        tuple(_encoded(encoder, _spread(waiting))),
    )


def score_rows(
    sample: ScoringSample, dtype: str, log_probs: Callable[[Side], Sequence[float]]
) -> ScoredRows:
    """The rows with `log_probs` of each token after the first, computed in `dtype`. Every process
    that holds a part of the model must call it, with the same rows."""
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
    log_probs: list[float] = (chosen - kept.logsumexp(dim=-1)).tolist()
    return log_probs


def _spread(items: Sequence[Item]) -> list[Item]:
    count = min(COUNT, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def _cut(side: Side) -> Side:
    # The first token is never predicted.
    first = side.trained.index(True, 1)
    end = TOKENS if first < TOKENS else first + TRAINED
    return Side(side.ids[:end], side.trained[:end])


def _encoded(encoder: Encoder, prompts: Sequence[Sequence[Message]]) -> Iterator[EncodedPrompt]:
    for prompt in prompts:
        messages = [{"role": message["role"], "content": message["content"]} for message in prompt]
        try:
            yield EncodedPrompt(messages, encoder.encode_prompt(messages))
        except FormatError:
            continue  # a template that writes whole conversations only
