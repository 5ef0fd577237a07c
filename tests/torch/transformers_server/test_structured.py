"""Replies held to a form: calls that are demanded, strict functions, JSON by a schema.

Needs llguidance, which the software stack `structured` has.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from streaming import events
from tests.support.built_software import built_python
from tiny_models import CONFIGS, lengthen, make_model

from agentc_backends.software import STRUCTURED
from conformance import CONVERSATION, Target, started

pytestmark = pytest.mark.long
MODULE = "agentc_backends.servers.transformers.job_serve"
ITEM = {
    "type": "object",
    "properties": {"item": {"enum": ["oak log", "stick"]}, "count": {"enum": [1, 2, 4]}},
    "required": ["item", "count"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": ITEM}}
    for name in ("get", "craft")
]
JSON_REPLY = {"type": "json_schema", "json_schema": {"name": "item", "schema": ITEM}}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    made = make_model(tmp_path_factory.mktemp("llama"), CONFIGS["llama-gqa"])
    folder = lengthen(made, 2048)
    place = tmp_path_factory.mktemp("server")
    arguments = ["--model", str(folder), "--structured"]
    with started(built_python(STRUCTURED), MODULE, arguments, place) as (url, _):
        yield Target(url, "test-token", "policy", str(folder), 2048)


def ask(target: Target, **fields: Any) -> dict[str, Any]:
    fields = {"max_tokens": 200, "temperature": 1.0, **fields}
    body = target.chat_body(return_token_ids=True, **fields)

    async def twice() -> tuple[Any, list[Any]]:
        answer = await target.raw("POST", "/v1/chat/completions", body)
        assert answer.status_code == 200, answer.text
        return answer.json(), await events(target, "/v1/chat/completions", body)

    reply, chunks = asyncio.run(twice())
    (choice,) = reply["choices"]
    parts = [part for chunk in chunks for part in chunk["choices"]]
    # Streamed, it is the same reply, with the same ids of its calls.
    calls = [call for part in parts for call in part["delta"].get("tool_calls", [])]
    assert [call.pop("index") for call in calls] == list(range(len(calls)))
    assert calls == choice["message"].get("tool_calls", [])
    said = "".join(part["delta"].get("content") or "" for part in parts)
    assert said == (choice["message"]["content"] or "")
    assert parts[-1]["finish_reason"] == choice["finish_reason"]
    assert [t for part in parts for t in part.get("token_ids", [])] == choice["token_ids"]
    return dict(choice)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("choice", ["required", "craft"])
def test_a_call_that_is_demanded_comes(target: Target, choice: str, seed: int) -> None:
    named = {"type": "function", "function": {"name": choice}}
    reply = ask(
        target,
        tools=TOOLS,
        tool_choice=choice if choice == "required" else named,
        parallel_tool_calls=False,
        seed=seed,
        top_p=0.9 if seed % 2 else 1.0,
    )
    assert reply["finish_reason"] == "tool_calls"
    assert reply["message"]["content"] is None
    (call,) = reply["message"]["tool_calls"]
    assert call["function"]["name"] in (["get", "craft"] if choice == "required" else ["craft"])
    arguments = json.loads(call["function"]["arguments"])
    assert arguments["item"] in ("oak log", "stick")
    assert arguments["count"] in (1, 2, 4)


@pytest.mark.parametrize("seed", range(3))
def test_json_follows_its_schema(target: Target, seed: int) -> None:
    reply = ask(target, response_format=JSON_REPLY, seed=seed)
    assert set(json.loads(reply["message"]["content"])) == {"item", "count"}
    assert reply["finish_reason"] == "stop"


def test_greedy_and_drawn_replies_do_not_depend_on_what_runs_beside(target: Target) -> None:
    async def replies(seeds: list[int], together: bool) -> list[str]:
        bodies = [
            target.chat_body(
                max_tokens=60, response_format=JSON_REPLY, seed=seed,
                temperature=float(seed % 2),
            )
            for seed in seeds
        ]  # fmt: skip
        asked = [target.raw("POST", "/v1/chat/completions", body) for body in bodies]
        found = await asyncio.gather(*asked) if together else [await one for one in asked]
        return [answer.json()["choices"][0]["message"]["content"] for answer in found]

    alone = asyncio.run(replies(list(range(8)), False))
    assert asyncio.run(replies(list(range(8)), True)) == alone


@pytest.mark.parametrize("seed", range(3))
def test_a_strict_function_is_followed_wherever_it_is_called(target: Target, seed: int) -> None:
    strict = [{**t, "function": {**t["function"], "strict": True}} for t in TOOLS]
    talk = [*CONVERSATION, {"role": "assistant", "content": '<tool_call>\n{"name": "get"'}]
    free = ask(target, tools=strict, seed=seed, max_tokens=40)
    assert free["finish_reason"] in ("stop", "length", "tool_calls")
    # A reply may be text, which an untrained model's is; a schema or a call is the other choice.
    either = ask(
        target, messages=talk, tools=strict, seed=seed, response_format=JSON_REPLY, max_tokens=200
    )
    if either["message"].get("tool_calls"):
        assert either["finish_reason"] in ("tool_calls", "length")
    else:
        assert set(json.loads(either["message"]["content"])) == {"item", "count"}


def test_a_schema_that_cannot_be_followed_is_refused(target: Target) -> None:
    for schema in ({"type": "integr"}, {"type": "array", "uniqueItems": True}):
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        body = target.chat_body(response_format=form)
        answer = asyncio.run(target.raw("POST", "/v1/chat/completions", body))
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["param"] == "response_format"
        assert "this schema cannot be followed" in error["message"]
