"""Calls of functions in plain messages: written, read out of replies, whole and in pieces."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc_backends.data.chat.formats import FormatError, format_named, render
from agentc_backends.data.chat.tool_calls import (
    ToolCall,
    ToolCallReader,
    call_text,
    plain_messages,
    read_reply,
)

CRAFT = {
    "type": "function",
    "function": {"name": "craft", "parameters": {"type": "object", "properties": {}}},
}


def called(name: str, arguments: str, number: str = "1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": number, "type": "function", "function": function}


@given(
    st.text("abc_", min_size=1),
    st.dictionaries(st.text(max_size=4), st.none() | st.integers() | st.text(max_size=9)),
    st.sampled_from(["", "Thought: go.", "a < b", "<tool", "<tool_call>no</tool_call>"]),
)
def test_a_call_that_was_read_is_written_as_it_was(
    name: str, arguments: dict[str, Any], words: str
) -> None:
    reply = words + ("\n" if words else "") + call_text(name, json.dumps(arguments))
    text, calls = read_reply(reply)
    assert (text, [call.name for call in calls]) == (words, [name])
    assert json.loads(calls[0].arguments) == arguments
    message = {
        "role": "assistant",
        "content": text,
        "tool_calls": [called(call.name, call.arguments) for call in calls],
    }
    assert plain_messages([message], [])[0]["content"] == reply


PIECES = [
    "<tool_call>",
    "</tool_call>",
    '{"name": "f", "arguments": {"a": "</tool_call>"}}',
    '{"name": "f"}',
    '{"name": "f", "arguments": [1]}',
    '{"name": "f", "arg',
    "\n",
    " ",
    "word",
    "<tool",
    '"',
]


@given(st.lists(st.sampled_from(PIECES), max_size=9), st.data())
def test_pieces_decide_nothing(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    places = [0, *sorted(cuts), len(text)]
    reader = ToolCallReader()
    found: list[str | ToolCall] = []
    for start, end in pairwise(places):
        found += reader.add(text[start:end])
    found += reader.end()
    words = "".join(part for part in found if isinstance(part, str))
    calls = [part for part in found if isinstance(part, ToolCall)]
    assert (words, calls) == read_reply(text)
    if not calls:
        assert words == text


@pytest.mark.parametrize(
    ("reply", "words", "names"),
    [
        ('<tool_call>\n{"name": "a"}\n</tool_call>\n<tool_call>{"name": "b"}</tool_call>',
         "", ["a", "b"]),
        ('I go. \n<tool_call>{"name": "a"}</tool_call>\nDone.', "I go.\nDone.", ["a"]),
        ('<tool_call>{"name": 3}</tool_call>', '<tool_call>{"name": 3}</tool_call>', []),
        ("<tool_call>{broken}</tool_call> x", "<tool_call>{broken}</tool_call> x", []),
        ('<tool_call>{"name": "a"', '<tool_call>{"name": "a"', []),
        ('<tool_call>{no}</tool_call><tool_call>{"name": "a"}</tool_call>',
         "<tool_call>{no}</tool_call>", ["a"]),
    ],
)  # fmt: skip
def test_what_is_a_call(reply: str, words: str, names: list[str]) -> None:
    text, calls = read_reply(reply)
    assert (text, [call.name for call in calls]) == (words, names)


def test_functions_calls_and_results_in_plain_messages() -> None:
    talk = [
        {"role": "user", "content": "Craft sticks."},
        {"role": "assistant", "content": "", "tool_calls": [called("craft", '{"n":4}')]},
        {"role": "tool", "tool_call_id": "1", "content": "Crafted 4 stick"},
        {"role": "tool", "tool_call_id": "2", "content": "You have 4 stick"},
        {"role": "assistant", "content": "Done."},
    ]
    plain = plain_messages(talk, [CRAFT])
    assert [m["role"] for m in plain] == ["system", "user", "assistant", "user", "assistant"]
    assert json.dumps(CRAFT) in plain[0]["content"]
    assert plain[2]["content"] == call_text("craft", '{"n":4}')
    results = plain[3]["content"]
    assert results.index("Crafted 4 stick") < results.index("You have 4 stick")
    assert results.count("<tool_response>") == 2
    # A format whose speakers alternate takes them too.
    assert "</tool_response>" in render(format_named("llama-2"), plain)


def test_a_system_text_keeps_its_place() -> None:
    (system, _) = plain_messages(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}], [CRAFT]
    )
    assert system["content"].startswith("Be brief.\n\n")
    # Without functions nothing is touched.
    talk = [{"role": "user", "content": "Hi"}]
    assert plain_messages(talk, []) == talk


def test_arguments_that_are_no_object_are_refused() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [called("craft", "[1]")]}
    with pytest.raises(FormatError, match="'craft' with arguments that are no JSON object"):
        plain_messages([message], [])
