"""What vLLM's gate lets through of requests, without vLLM: the bounds of agentc's own servers, and
functions as texts where the chat format has no place for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from agentc_backends.agents.common.prompts import (
    ACT,
    EpisodePrompt,
    action_call,
    observation_message,
    opening_messages,
)
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.tool_calls import TemplateTools, in_plain_text, request_of
from agentc_backends.servers.vllm import gate
from agentc_backends.servers.vllm.conversations import FunctionTexts, PromptTokens

CHAT, TEXT, TOKENS = "/v1/chat/completions", "/v1/completions", "/tokenize"
FIELDS = frozenset(
    {"messages", "prompt", "n", "stop", "logprobs", "top_logprobs", "prompt_logprobs", "best_of"}
    | {"tools", "tool_choice"}
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> TestClient:
    async def answer(request: Request) -> JSONResponse:
        return JSONResponse({"seen": await request.json()})

    monkeypatch.setattr(gate, "_declared_fields", lambda: {CHAT: FIELDS, TEXT: FIELDS})
    monkeypatch.delenv("AGENTC_TOKEN", raising=False)
    paths = (CHAT, TEXT, TOKENS)
    app = Starlette(routes=[Route(path, answer, methods=["POST"]) for path in paths])
    return TestClient(gate.Gate(app))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The gate of a model whose chat format does so with functions."""
    monkeypatch.setattr(sys, "argv", ["job_serve.py", "serve", "model", "--port", "1"])
    monkeypatch.setattr(
        gate,
        "FunctionTexts",
        lambda model: FunctionTexts(model, {Path("model"): request.param}.get),
    )
    monkeypatch.setattr(gate, "PromptTokens", lambda model: PromptTokens(model, lambda _: LETTERS))


@dataclass(frozen=True, slots=True)
class Letters:
    """A chat format whose tokens are the letters of the last message."""

    by_line: bool = False
    control: Sequence[str] = ("<|im_start|>", "<|im_end|>")

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> list[int]:
        if continue_final_message:
            raise FormatError("it cannot be continued")
        return [*map(ord, messages[-1]["content"]), *([0] if add_generation_prompt else [])]


LETTERS = Letters()


def say(role: str) -> dict[str, str]:
    return {"role": role, "content": "x"}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"messages": [say("user")] * 20_000}, "messages"),
        ({"messages": [say("u" * 1000)]}, "messages"),
        ({"messages": [say("user")], "n": 100_000}, "n"),
        ({"messages": [say("user")], "n": 1e9}, "n"),
        ({"messages": [say("user")], "top_logprobs": 5000}, "top_logprobs"),
        ({"prompt": "x", "logprobs": 5000}, "logprobs"),
        ({"prompt": "x", "prompt_logprobs": 5000}, "prompt_logprobs"),
        ({"prompt": "x", "best_of": 5000}, "best_of"),
        ({"prompt": "x", "stop": ["a"] * 1000}, "stop"),
        ({"prompt": "x", "stop": "a" * 10_000}, "stop"),
        ({"prompt": ["x"] * 1000}, "prompt"),
        ({"prompt": ["x"] * 100, "n": 100}, "prompt"),
    ],
)
def test_one_request_may_not_ask_for_too_much(
    asked: TestClient, body: dict[str, Any], name: str
) -> None:
    answer = asked.post(CHAT if "messages" in body else TEXT, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(f"{name}: ")


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [say("user")], "n": 2, "logprobs": True, "top_logprobs": 5},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"prompt": list(range(5000)), "stop": ["a", "b"], "logprobs": 5},
    ],
)
def test_what_is_usual_passes_as_it_is(asked: TestClient, body: dict[str, Any]) -> None:
    answer = asked.post(CHAT if "messages" in body else TEXT, json=body)
    assert answer.json() == {"seen": body}


def test_what_is_nested_too_deeply_is_refused(asked: TestClient) -> None:
    answer = asked.post(TEXT, content=b"[" * 100_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")


def played() -> list[dict[str, Any]]:
    """An episode of `reply_format: tools`, which waits for its second reply."""
    prompt = EpisodePrompt("Craft.", None, (), "tools", "Be brief.", observation_prefix="")
    messages = opening_messages(prompt, "Goal: craft oak planks.")
    messages.append({"role": "assistant", "content": action_call("inventory")})
    messages.append(observation_message("", "Inventory: nothing", prompt.answered_by))
    return messages


def asked_with(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """As the client of rollouts asks."""
    said, tools = request_of(messages)
    return {"messages": said, "tools": list(tools), "tool_choice": "none"}


CALLED = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "1", "type": "function", "function": {"name": "act", "arguments": '{"action": "look"}'}}
]}  # fmt: skip
unknown, rendered, foreign = (
    pytest.mark.parametrize("found", [each], indirect=True)
    for each in (TemplateTools.UNKNOWN, TemplateTools.RENDERED, TemplateTools.FOREIGN)
)


@unknown
@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("path", [CHAT, TOKENS])
def test_a_rollouts_functions_become_the_texts_that_are_trained(
    asked: TestClient, path: str
) -> None:
    messages = played()
    body = {**asked_with(messages), "stop": ["x"]}
    if path == TOKENS:
        del body["tool_choice"], body["stop"]
    seen = asked.post(path, json=body).json()["seen"]
    assert seen.pop("messages") == list(in_plain_text(messages))
    assert seen == ({} if path == TOKENS else {"stop": ["x"]})


@unknown
@pytest.mark.usefixtures("found")
def test_functions_that_vllm_is_to_read_calls_of_stay(asked: TestClient) -> None:
    body = {"messages": [say("user"), CALLED], "tools": [ACT], "tool_choice": "auto"}
    seen = asked.post(CHAT, json=body).json()["seen"]
    assert (seen["tools"], seen["tool_choice"]) == ([ACT], "auto")
    assert [m["role"] for m in seen["messages"]] == ["system", "user", "assistant"]
    assert seen["messages"][2]["content"] == action_call("look")
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    assert asked.post(CHAT, json={**body, "messages": [picture]}).status_code == 400
    # Without functions, as it is.
    assert asked.post(CHAT, json={"messages": [picture]}).json()["seen"]["messages"] == [picture]


@rendered
@pytest.mark.usefixtures("found")
def test_a_template_that_renders_functions_gets_them(asked: TestClient) -> None:
    body = asked_with(played())
    assert asked.post(CHAT, json=body).json() == {"seen": body}


@foreign
@pytest.mark.usefixtures("found")
def test_calls_that_nobody_would_read_are_refused(asked: TestClient) -> None:
    answer = asked.post(CHAT, json=asked_with(played()))
    assert answer.status_code == 400
    assert "a notation that nobody reads" in answer.json()["error"]["message"]
    # Of those who have vLLM read calls, and want a last word without one.
    for said, choice in (([say("user")], "auto"), ([say("user"), CALLED], "none")):
        body = {"messages": said, "tools": [ACT], "tool_choice": choice}
        assert asked.post(CHAT, json=body).json() == {"seen": body}


SPELLED = {"role": "user", "content": "a <|im_end|>"}
HANDED = [*map(ord, "a <|im_end|>")]


@unknown
@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("path", [CHAT, TOKENS])
def test_a_text_that_spells_a_control_token_is_handed_over_in_tokens(
    asked: TestClient, path: str
) -> None:
    """vLLM would make the control token of it."""
    seen = asked.post(path, json={"messages": [SPELLED]}).json()["seen"]
    assert seen["kv_transfer_params"] == {"prompt_token_ids": [*HANDED, 0]}
    assert seen["messages"] == [SPELLED]
    body = {"messages": [SPELLED], "add_generation_prompt": False}
    seen = asked.post(TOKENS, json=body).json()["seen"]
    assert seen["kv_transfer_params"] == {"prompt_token_ids": HANDED}
    # Of functions that become texts, too.
    tools = {"messages": [say("user"), {**CALLED}, SPELLED], "tools": [ACT], "tool_choice": "none"}
    seen = asked.post(CHAT, json=tools).json()["seen"]
    assert seen["kv_transfer_params"] == {"prompt_token_ids": [*HANDED, 0]}
    assert "tools" not in seen


@rendered
@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    "more",
    [
        {"tools": [ACT]},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"continue_final_message": True, "add_generation_prompt": False},
    ],
)
def test_what_tokens_cannot_express_beside_such_a_text_is_refused(
    asked: TestClient, more: dict[str, Any]
) -> None:
    answer = asked.post(TOKENS, json={"messages": [SPELLED], **more})
    assert answer.status_code == 400
    assert "spell the control token <|im_end|>" in answer.json()["error"]["message"]
    assert asked.post(TOKENS, json={"messages": [say("user")], **more}).status_code == 200
