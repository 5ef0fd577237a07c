"""Proves that a row trains the tokens that were drawn, or says why it cannot be proved.

The server writes the row's messages again, as trainers do (`/tokenize`); each prompt it was asked,
with what it drew behind, has to be the beginning of that. Of a reply that a stop text ended it is
what was drawn before that text: rows have the format's own end there, whoever plays them.
Neighbour: `history.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentc_backends.agents.recorded.exchange import Exchange, Message
from agentc_backends.agents.recorded.history import REASONS, History, Unproved, history_of


class Tokenize(Protocol):
    """Messages -> the tokens of the conversation, with no reply opened behind it; without `ended`,
    those up to the last letter of its last message, none where the server cannot tell them."""

    async def __call__(
        self, messages: Sequence[Message], *, ended: bool = True
    ) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class ProvedConversation:
    """A row's messages, proved. `ids` are the tokens up to the last one that was drawn; of each,
    `drawn` says whether the policy drew it, and `logprobs` its natural-log probability then (None
    of the others, and where the server did not tell)."""

    history: History
    ids: tuple[int, ...]
    drawn: tuple[bool, ...]
    logprobs: tuple[float | None, ...]


async def rebuilt(
    exchanges: Sequence[Exchange], tokenize: Tokenize
) -> ProvedConversation | Unproved:
    """The conversation of an episode. What `tokenize` raises is raised."""
    history = history_of(exchanges)
    if isinstance(history, Unproved):
        return history
    if any(not each.prompt_ids or not each.token_ids for each in exchanges):
        return Unproved("untold", REASONS["untold"])
    plain = [{"role": m["role"], "content": m["content"]} for m in history.messages]
    written = tuple(await tokenize(plain))
    drawn = [False] * len(written)
    logprobs: list[float | None] = [None] * len(written)
    end = 0
    for number, (exchange, place) in enumerate(zip(exchanges, history.replies, strict=True), 1):
        prompt, reply = exchange.prompt_ids or (), exchange.token_ids or ()
        start, seen = len(prompt), (*prompt, *reply)
        if exchange.stopped_by is not None and written[: len(seen)] != seen:
            begun = tuple(await tokenize(plain[: place + 1], ended=False))
            if start <= len(begun) and seen[: len(begun)] == begun:
                reply, seen = begun[start:], begun
        if start < end or written[: len(seen)] != seen:
            at = _first_difference(written, seen)
            where = "prompt" if at < start else "reply"
            return Unproved("retokenised", f"token {at}, in the {where} of request {number}")
        end = len(seen)
        drawn[start:end] = [True] * len(reply)
        told = exchange.logprobs
        if told is not None and len(told) == len(exchange.token_ids or ()):
            logprobs[start:end] = told[: len(reply)]
    return ProvedConversation(history, written[:end], tuple(drawn[:end]), tuple(logprobs[:end]))


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
