"""Functions in requests and calls in replies, by the scripted server: whole and streamed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from streaming import events

from agentc_backends.data.chat.tool_calls import call_text
from conformance import Target, started

MODULE = "agentc_backends.servers.scripted.job_serve"
PARAMETERS = {"type": "object", "properties": {"item": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
    for name in ("get", "craft")
]
BOTH = call_text("get", '{"item": "oak log"}') + "\n" + call_text("craft", '{"item":"stick"}')
RULES = [
    {"match": "(?s)<tool_response>\nGot (?P<what>.*?)\n", "reply": "I have \\g<what>."},
    {"match": "Craft a stick", "reply": "I start. \n" + BOTH},
    {"reply": "No functions."},
]
ASKED = [{"role": "user", "content": "Craft a stick."}]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("scripted")
    arguments = ["--rules", json.dumps(RULES), "--model", str(folder), "--max-model-len", "8192"]
    with started(sys.executable, MODULE, arguments, folder) as (url, _):
        yield Target(url, "test-token", "policy", str(folder), 8192)


def ask(target: Target, **fields: Any) -> dict[str, Any]:
    body = {"model": target.model, "messages": ASKED, "max_tokens": 400, **fields}
    answer = asyncio.run(target.raw("POST", "/v1/chat/completions", body))
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    return dict(choice)


def test_calls_stand_beside_the_text(target: Target) -> None:
    choice = ask(target, tools=TOOLS)
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I start."
    calls = choice["message"]["tool_calls"]
    assert [call["function"] for call in calls] == [
        {"name": "get", "arguments": '{"item": "oak log"}'},
        {"name": "craft", "arguments": '{"item":"stick"}'},
    ]
    assert len({call["id"] for call in calls}) == 2


def test_streamed_calls_are_the_same_with_the_same_ids(target: Target) -> None:
    body = {"model": target.model, "messages": ASKED, "max_tokens": 400, "tools": TOOLS}
    chunks = asyncio.run(events(target, "/v1/chat/completions", body))
    parts = [part for chunk in chunks for part in chunk["choices"]]
    calls = [call for part in parts for call in part["delta"].get("tool_calls", [])]
    assert [call.pop("index") for call in calls] == [0, 1]
    message = ask(target, tools=TOOLS)["message"]
    assert calls == message["tool_calls"]
    said = "".join(part["delta"].get("content") or "" for part in parts)
    assert said == message["content"]
    assert parts[-1]["finish_reason"] == "tool_calls"


def test_results_go_back(target: Target) -> None:
    message = ask(target, tools=TOOLS)["message"]
    call = message["tool_calls"][0]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "Got oak log"}
    second = ask(target, tools=TOOLS, messages=[*ASKED, message, result])
    assert second["message"] == {"role": "assistant", "content": "I have oak log."}
    assert second["finish_reason"] == "stop"


def test_one_call_alone_where_several_are_not_wanted(target: Target) -> None:
    (call,) = ask(target, tools=TOOLS, parallel_tool_calls=False)["message"]["tool_calls"]
    assert call["function"]["name"] == "get"


def test_without_choice_calls_stay_text(target: Target) -> None:
    choice = ask(target, tools=TOOLS, tool_choice="none")
    assert choice["message"] == {"role": "assistant", "content": "I start. \n" + BOTH}
    assert choice["finish_reason"] == "stop"
    other = [{"role": "user", "content": "Hi"}]
    assert ask(target, messages=other, tools=TOOLS)["message"]["content"] == "No functions."


def test_contents_in_parts_are_joined_and_results_in_order(target: Target) -> None:
    parts = [{"type": "text", "text": text} for text in ("Please.", "Craft a stick", "and eat.")]
    message = ask(target, messages=[{"role": "user", "content": parts}], tools=TOOLS)["message"]
    assert message["content"] == "I start."


NAMED = {"type": "function", "function": {"name": "mine"}}


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"tools": TOOLS, "tool_choice": "required"}, "tool_choice", "holds no reply to a form"),
        ({"response_format": {"type": "json_object"}}, "response_format", "holds no reply"),
        ({"tools": [{**TOOLS[0], "function": {"name": "get", "strict": True}}]}, "tools",
         "holds no reply"),
        ({"tools": TOOLS, "tool_choice": NAMED}, "tool_choice", "'mine' is none of the tools"),
        ({"tool_choice": "auto"}, "tool_choice", "needs tools"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools", "the same name"),
        ({"tools": [{"type": "web_search"}]}, "tools", "must be"),
        ({"tools": [{**TOOLS[0], "function": {"name": "a b"}}]}, "tools", "must be a word"),
        ({"response_format": {"type": "grammar"}}, "response_format", "json_schema"),
        ({"parallel_tool_calls": False}, "parallel_tool_calls", "needs tools"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages", "tool_call_id"),
        ({"messages": [{"role": "user", "content": "x", "audio": {}}]}, "messages", "audio"),
        ({"messages": [{"role": "user"}]}, "messages", "must be {role, content}"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages", "part"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages",
         "tool_calls[0]"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_by_name(
    target: Target, fields: dict[str, Any], param: str, words: str
) -> None:
    body = {"model": target.model, "messages": ASKED, **fields}
    answer = asyncio.run(target.raw("POST", "/v1/chat/completions", body))
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param
    assert words in error["message"]
