"""What vLLM's gate lets through of requests, without vLLM: the bounds of agentc's own servers."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from agentc_backends.servers.vllm import gate

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
FIELDS = frozenset(
    {"messages", "prompt", "n", "stop", "logprobs", "top_logprobs", "prompt_logprobs", "best_of"}
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> TestClient:
    async def answer(request: Request) -> JSONResponse:
        return JSONResponse({"seen": await request.json()})

    monkeypatch.setattr(gate, "_known_fields", lambda: {CHAT: FIELDS, TEXT: FIELDS})
    monkeypatch.delenv("AGENTC_TOKEN", raising=False)
    app = Starlette(routes=[Route(path, answer, methods=["POST"]) for path in (CHAT, TEXT)])
    return TestClient(gate.Gate(app))


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
