"""Proves that a row trains the tokens that were drawn, or says why it cannot be proved.

The requests of an episode have to be one conversation that grows: each begins with the messages of
the one before and the reply to it. Then the server writes the row's messages again, as trainers do
(`/tokenize`); each prompt that it received, with what it drew behind, has to be the beginning of
that. Of a reply that a stop text ended it is what was drawn before that text: rows have the
format's own end there, in every kind of rollout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from agentc.runtime.contracts.row_contracts import message_findings
from agentc_backends.agents.recording.exchange import Exchange, Message
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.tool_calls import plain_messages

Reason: TypeAlias = Literal["silent", "compacted", "edited", "shape", "untold", "retokenised"]
REASONS: Mapping[Reason, str] = {
    "silent": "the program asked for no reply",
    "compacted": "a later request leaves out earlier messages",
    "edited": "a later request has other words, or replies that nobody drew, in earlier messages",
    "shape": "the messages are no conversation that a row can hold",
    "untold": "the server does not return tokens",
    "retokenised": "the conversation written again has other tokens than were drawn",
}
"""Why an episode has no row, and what that means."""


@dataclass(frozen=True, slots=True)
class Unproved:
    """No row is made; `detail` says where."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class History:
    """The conversation, its last reply included, in messages of role and text alone: functions and
    calls are written as `plain_messages` does. `replies` are the places of those that were drawn,
    and `prompt_length` messages precede the first."""

    messages: tuple[Message, ...]
    prompt_length: int
    replies: tuple[int, ...]


def build_history(exchanges: Sequence[Exchange]) -> History | Unproved:
    """The conversation of all exchanges, in the order in which they were answered."""
    if not exchanges:
        return Unproved("silent", REASONS["silent"])
    places: list[int] = []
    before: list[Message] = []
    for number, exchange in enumerate(exchanges, start=1):
        now = list(exchange.messages)
        wrong = _departure(number, before, now)
        if wrong is None and exchange.tools != exchanges[0].tools:
            wrong = Unproved("edited", f"request {number} has other functions")
        if wrong is not None:
            return wrong
        places.append(len(now))
        # The words of the history, so that a reply is kept as later requests show it.
        before = [*now, exchange.reply]
    return _plain(before, exchanges, places)


def following_message(history: History, later: Sequence[Message]) -> Message | None:
    """The message that a later request has behind the conversation, where it has that one alone."""
    *before, last = later or ({"role": "assistant", "content": ""},)
    same = len(before) == len(history.messages) and all(map(_same, history.messages, before))
    return last if same and last["role"] == "user" else None


def _departure(number: int, before: list[Message], now: list[Message]) -> Unproved | None:
    """How a request departs from the conversation before it."""
    for place, (old, new) in enumerate(zip(before, now, strict=False)):
        if _same(old, new):
            continue
        later = any(_same(each, new) for each in before[place + 1 :])
        if later or len(now) < len(before):
            return Unproved("compacted", f"request {number} leaves out message {place}")
        return Unproved("edited", f"request {number} has another message {place}")
    if len(now) < len(before):
        return Unproved("compacted", f"request {number} ends before the last reply")
    for place in range(len(before), len(now) if before else 0):
        if now[place]["role"] == "assistant":
            return Unproved("edited", f"message {place} of request {number} is a reply of nobody")
    return None


def _same(one: Message, other: Message) -> bool:
    return _words(one) == _words(other)


def _words(message: Message) -> tuple[Any, ...]:
    """What a message says; white space around a text is left to the comparison of tokens."""
    calls = tuple(
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls", ())
    )
    return message["role"], message["content"].strip(), calls, message.get("tool_call_id")


def _plain(
    messages: list[Message], exchanges: Sequence[Exchange], places: list[int]
) -> History | Unproved:
    tools = exchanges[0].tools
    try:
        plain: list[Message] = [*plain_messages(messages, tools)]
        replies = [len(plain_messages(messages[:place], tools)) for place in places]
    except (FormatError, KeyError, TypeError) as error:
        return Unproved("shape", str(error))
    for place, exchange in zip(replies, exchanges, strict=True):
        if exchange.finish_reason == "length":
            # Training must not take the end of such a turn for something the policy wrote.
            plain[place]["cut"] = True
    found = next(message_findings(plain), None)
    if found is not None:
        return Unproved("shape", found)
    return History(tuple(plain), replies[0], tuple(replies))


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


async def rebuild(
    exchanges: Sequence[Exchange], tokenize: Tokenize
) -> ProvedConversation | Unproved:
    """The conversation of an episode. What `tokenize` raises is raised."""
    history = build_history(exchanges)
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
            prefix = tuple(await tokenize(plain[: place + 1], ended=False))
            if start <= len(prefix) and seen[: len(prefix)] == prefix:
                reply, seen = prefix[start:], prefix
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
