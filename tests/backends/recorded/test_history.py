"""Recorded requests: one conversation that grows gives a row, all others are refused by reason.

Tokens are characters here, in a chat format that has a mark before each message and one behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agentc_backends.agents.recording.exchange import Exchange, Message
from agentc_backends.agents.recording.proof import ProvedConversation, Unproved, rebuild
from agentc_backends.data.chat.tool_calls import call_text, plain_messages

_OPEN = {"system": 1, "user": 2, "assistant": 3}
_END = 4


def written(messages: Sequence[Message]) -> list[int]:
    ids: list[int] = []
    for message in messages:
        ids += [_OPEN[message["role"]], *map(ord, message["content"]), _END]
    return ids


async def tokenize(messages: Sequence[Message], *, ended: bool = True) -> list[int]:
    return written(messages) if ended else written(messages)[:-1]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def exchange(messages: Sequence[Message], text: str, **told: Any) -> Exchange:
    """As a server answers that draws the letters of `text`, and then the end."""
    drawn = (*map(ord, text), _END)
    fields: dict[str, Any] = {
        "messages": tuple(messages),
        "tools": (),
        "reply": said(text),
        "finish_reason": "stop",
        "prompt_tokens": 1,
        "completion_tokens": len(drawn),
        "prompt_ids": (
            *written(plain_messages(messages, told.get("tools", ()))),
            _OPEN["assistant"],
        ),
        "token_ids": drawn,
        "logprobs": tuple(-0.5 for _ in drawn),
    }
    return Exchange(**{**fields, **told})


def row(*exchanges: Exchange) -> ProvedConversation | Unproved:
    return asyncio.run(rebuild(exchanges, tokenize))


def reason(*exchanges: Exchange) -> str:
    found = row(*exchanges)
    assert isinstance(found, Unproved)
    return found.reason


FIRST = [user("do it"), said("OK"), user("go")]
SECOND = [*FIRST, said("look"), user("a door")]


def test_a_conversation_that_grows_is_proved_token_by_token() -> None:
    found = row(exchange(FIRST, "look"), exchange(SECOND, "open"))
    assert isinstance(found, ProvedConversation)
    assert list(found.history.messages) == [*SECOND, said("open")]
    assert (found.history.prompt_length, found.history.replies) == (3, (3, 5))
    assert list(found.ids) == written([*SECOND, said("open")])
    drawn = [token for token, ours in zip(found.ids, found.drawn, strict=True) if ours]
    assert drawn == [*map(ord, "look"), _END, *map(ord, "open"), _END]
    assert [each for each in found.logprobs if each is not None] == [-0.5] * len(drawn)


def test_a_reply_that_was_cut_is_marked() -> None:
    letters = tuple(map(ord, "lo"))
    cut = exchange(FIRST, "lo", finish_reason="length", token_ids=letters, logprobs=None)
    found = row(cut)
    assert isinstance(found, ProvedConversation)
    assert found.history.messages[-1] == {**said("lo"), "cut": True}
    assert len(found.ids) == len(found.drawn) == len(cut.prompt_ids or ()) + 2


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param([*FIRST, said("LOOK"), user("a door")], "edited", id="a reply in other words"),
        pytest.param([user("do that"), *SECOND[1:]], "edited", id="another task"),
        pytest.param([*SECOND, said("so"), user("on")], "edited", id="a reply of nobody"),
        pytest.param([user("in short: a door")], "compacted", id="a summary"),
        pytest.param(FIRST, "compacted", id="asked twice"),
        pytest.param([*FIRST, said(" look"), user("a door")], "retokenised", id="white space"),
        pytest.param([*SECOND, user("and more")], "shape", id="no alternation"),
    ],
)
def test_other_histories_are_refused(later: list[Message], expected: str) -> None:
    assert reason(exchange(FIRST, "look"), exchange(later, "open")) == expected


def test_what_a_context_lost_is_a_compaction() -> None:
    """As long as before, without the oldest turn."""
    third = [*FIRST[:2], *SECOND[4:], said("open"), user("a wall"), user("and on")]
    rest = [exchange(FIRST, "look"), exchange(SECOND, "open")]
    assert reason(*rest, exchange(third, "go")) == "compacted"


def test_other_functions_are_an_edit() -> None:
    tools = ({"type": "function", "function": {"name": "get"}},)
    assert reason(exchange(FIRST, "look"), exchange(SECOND, "open", tools=tools)) == "edited"


def test_an_episode_without_requests_or_tokens_has_no_row() -> None:
    assert reason() == "silent"
    assert reason(exchange(FIRST, "look", token_ids=None)) == "untold"


def test_tokens_that_are_written_otherwise_are_refused() -> None:
    """The same letters, drawn as other tokens than the tokenizer makes of them."""
    drawn = (ord("l"), 900, ord("k"), _END)
    found = row(exchange(FIRST, "look", token_ids=drawn))
    assert isinstance(found, Unproved)
    place = len(written(FIRST)) + 2
    assert (found.reason, found.detail) == (
        "retokenised",
        f"token {place}, in the reply of request 1",
    )
    other = (*written(FIRST)[:-1], 7, _END, _OPEN["assistant"])
    assert reason(exchange(FIRST, "look", prompt_ids=other)) == "retokenised"


def test_what_was_drawn_before_a_stop_text_is_proved() -> None:
    """Rows have the format's own end in the stop text's place, those of rollout.react too."""
    drawn = (*map(ord, "look\nObs"),)
    stopped = exchange(FIRST, "look", token_ids=drawn, logprobs=(-0.5,) * 8, stopped_by="\nObs")
    found = row(stopped, exchange(SECOND, "open"))
    assert isinstance(found, ProvedConversation)
    assert list(found.history.messages) == [*SECOND, said("open")]
    ours = [token for token, drawn in zip(found.ids, found.drawn, strict=True) if drawn]
    assert ours == [*map(ord, "look"), *map(ord, "open"), _END]
    assert [each for each in found.logprobs if each is not None] == [-0.5] * len(ours)
    last = row(stopped)
    assert isinstance(last, ProvedConversation)
    assert list(last.ids) == written([*FIRST, said("look")])[:-1]


@pytest.mark.parametrize(
    ("drawn", "stopped_by"),
    [
        pytest.param("look\nObs", None, id="an end that nobody named"),
        pytest.param("lo\nObs", "\nObs", id="words that were not drawn"),
        pytest.param("l\u0384k\nObs", "\nObs", id="other tokens of the words"),
    ],
)
def test_other_ends_are_refused(drawn: str, stopped_by: str | None) -> None:
    told = {"token_ids": tuple(map(ord, drawn)), "stopped_by": stopped_by}
    assert reason(exchange(FIRST, "look", **told)) == "retokenised"


def test_a_stop_text_whose_beginning_a_server_cannot_tell_is_refused() -> None:
    async def only_ended(messages: Sequence[Message], *, ended: bool = True) -> list[int]:
        return written(messages) if ended else []

    drawn = (*map(ord, "look\nObs"),)
    stopped = exchange(FIRST, "look", token_ids=drawn, stopped_by="\nObs")
    found = asyncio.run(rebuild([stopped], only_ended))
    assert isinstance(found, Unproved)
    assert found.reason == "retokenised"


def test_calls_of_functions_are_written_as_text() -> None:
    """In the notation of plain messages; a server that writes them otherwise is found by tokens."""
    tools = ({"type": "function", "function": {"name": "get"}},)
    call = {"id": "c", "type": "function", "function": {"name": "get", "arguments": '{"a": 1}'}}
    called = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "got"}
    asked = [user("go")]
    text = call_text("get", '{"a": 1}')
    first = exchange(asked, text, tools=tools, reply=called)
    then = exchange([*asked, called, result], "done", tools=tools)
    found = row(first, then)
    assert isinstance(found, ProvedConversation)
    assert [m["role"] for m in found.history.messages] == [
        "system", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert found.history.messages[2]["content"] == text
    assert (found.history.prompt_length, found.history.replies) == (2, (2, 4))
    otherwise = exchange(asked, text, tools=tools, reply=called, prompt_ids=(2, 8, 8, 4, 3))
    assert reason(otherwise, then) == "retokenised"
    other_call = {**called, "tool_calls": [{**call, "id": "d"}]}
    edited = exchange([*asked, other_call, result], "done", tools=tools)
    assert reason(first, edited) == "edited"
