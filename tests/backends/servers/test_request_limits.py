"""Sizes of one request to a model server: refused by name before they cost time or memory."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx2
import pytest
from tests.support.patience import PATIENCE_S

from agentc_backends.openai_api import requests
from agentc_backends.openai_api.application import create_app
from agentc_backends.openai_api.encoding import INLINE_LETTERS
from agentc_backends.servers.scripted.job_serve import ScriptedModel, read_rules

CONTEXT = 4 * INLINE_LETTERS


class Counting(ScriptedModel):
    """A scripted model whose tokenizer waits to be released, and counts its calls."""

    def __init__(self) -> None:
        super().__init__(read_rules([{"reply": "yes"}]), root="r", max_model_len=CONTEXT)
        self.encoded: list[int] = []
        self.released = threading.Event()
        self.released.set()

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        self.encoded.append(len(text))
        if len(text) > INLINE_LETTERS:
            assert self.released.wait(PATIENCE_S), "nobody let the tokenizer continue"
        return super().encode(text, add_special_tokens=add_special_tokens)


def client_of(model: ScriptedModel) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=create_app(model, "m"))
    return httpx2.AsyncClient(transport=transport, base_url="http://server", timeout=PATIENCE_S)


def ask(model: ScriptedModel, path: str, **body: Any) -> httpx2.Response:
    async def request() -> httpx2.Response:
        async with client_of(model) as client:
            return await client.post(path, json={"model": "m", **body})

    return asyncio.run(request())


def message(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def spoken_by(role: str) -> list[dict[str, str]]:
    return [{"role": role, "content": "a"}]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/completions", {"prompt": ["a"] * (requests.MAX_PROMPTS + 1)}, "257 prompts"),
        ("/v1/completions", {"prompt": [[1]] * (requests.MAX_PROMPTS + 1)}, "257 prompts"),
        ("/v1/completions", {"prompt": ["a"] * 200, "n": 100}, "more than 1024 replies"),
        ("/v1/completions", {"prompt": "a", "stop": ["x"] * 65}, "at most 64 texts"),
        ("/v1/completions", {"prompt": "a", "stop": "x" * 5000}, "4096 letters"),
        (
            "/v1/completions",
            {"prompt": ["a" * 9000] * 200, "echo": True, "max_tokens": 0, "logprobs": 20},
            "log-probabilities",
        ),
        (
            "/v1/chat/completions",
            {"messages": message("a"), "logprobs": True, "top_logprobs": 20, "n": 20},
            "log-probabilities",
        ),
        ("/v1/chat/completions", {"messages": message("a") * 20000}, "20000 messages"),
        (
            "/v1/chat/completions",
            {"messages": spoken_by("u" * 9000)},
            "has 9000 letters",
        ),
        ("/tokenize", {"messages": spoken_by("u" * 65)}, "65 letters, over 64"),
    ],
)
def test_what_is_too_much_is_refused_by_name(path: str, body: dict[str, Any], words: str) -> None:
    answer = ask(Counting(), path, **body)
    assert answer.status_code == 400, answer.text[:300]
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/completions", {"prompt": "a" * (CONTEXT + 1)}, "context_length_exceeded"),
        (
            "/v1/chat/completions",
            {"messages": message("a" * CONTEXT) * 2},
            "context_length_exceeded",
        ),
        ("/tokenize", {"prompt": "a" * (CONTEXT + 1)}, "too_large"),
        ("/tokenize", {"messages": message("a" * (CONTEXT + 1))}, "too_large"),
    ],
)
def test_a_text_that_cannot_fit_is_not_even_encoded(
    path: str, body: dict[str, Any], code: str
) -> None:
    model = Counting()
    answer = ask(model, path, **body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert model.encoded == []


def test_the_first_prompt_that_does_not_fit_ends_the_work() -> None:
    model = Counting()
    answer = ask(model, "/v1/completions", prompt=["a", "a" * (CONTEXT + 1), *["b"] * 100])
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert model.encoded == [1]


def test_what_fits_is_answered_as_before() -> None:
    model = Counting()
    many = ask(model, "/v1/completions", prompt=["a"] * requests.MAX_PROMPTS, max_tokens=3)
    assert len(many.json()["choices"]) == requests.MAX_PROMPTS
    ids = ask(model, "/v1/completions", prompt=[97] * (CONTEXT - 3), max_tokens=3)
    assert ids.json()["choices"][0]["text"] == "yes"
    long = ask(model, "/v1/chat/completions", messages=message("a" * (CONTEXT - 100)))
    assert long.json()["choices"][0]["message"]["content"] == "yes"


def test_health_answers_while_a_long_prompt_is_encoded() -> None:
    model = Counting()
    model.released.clear()
    long = {"model": "m", "prompt": "a" * (CONTEXT - 100), "max_tokens": 3}

    async def both() -> tuple[httpx2.Response, httpx2.Response, httpx2.Response]:
        async with client_of(model) as client:
            slow = asyncio.create_task(client.post("/v1/completions", json=long))
            while not model.encoded:
                await asyncio.sleep(0.01)
            health = await client.get("/health")
            short = {**long, "prompt": "short"}
            behind = asyncio.create_task(client.post("/v1/completions", json=short))
            await asyncio.sleep(0.05)
            overlapped = len(model.encoded) > 1
            assert not slow.done()
            model.released.set()
            assert not overlapped, "two texts were encoded at once"
            return health, await slow, await behind

    health, slow, behind = asyncio.run(both())
    assert health.status_code == 200
    assert slow.json()["choices"][0]["text"] == "yes"
    assert behind.json()["choices"][0]["text"] == "yes"


def test_many_roles_are_not_rendered_on_the_loop() -> None:
    """Messages without content still have text that a template writes."""
    threads: list[str] = []

    class Noting(Counting):
        def encode_chat(self, *arguments: Any, **options: Any) -> list[int]:
            threads.append(threading.current_thread().name)
            return super().encode_chat(*arguments, **options)

    empty = [{"role": "u" * requests.MAX_ROLE_LETTERS, "content": ""}]
    ask(Noting(), "/tokenize", messages=empty * 4)
    ask(Noting(), "/tokenize", messages=empty * 1024)
    short, long = threads
    assert not short.startswith("encode")
    assert long.startswith("encode")
