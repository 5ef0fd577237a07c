"""What every model server must do with `stream: true`, as checks over HTTP beside `conformance.py`.

A streamed reply is the whole reply of the same request, put together again: texts, token ids,
log-probabilities and counts. Needs httpx2 alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from tests.support.patience import PATIENCE_S

from conformance import Target

Json = dict[str, Any]


async def events(target: Target, path: str, body: Json) -> list[Json]:
    """The events of a reply, which must be whole: the last line says that it is done."""
    headers = {"Authorization": f"Bearer {target.token}"}
    lines: list[str] = []
    async with (
        httpx2.AsyncClient(timeout=PATIENCE_S, trust_env=False) as http,
        http.stream(
            "POST", target.url + path, json={**body, "stream": True}, headers=headers
        ) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            lines += [line] if line else []
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line[6:]) for line in lines[:-1]]


def put_together(chunks: list[Json]) -> list[Json]:
    """The choices of a streamed reply, in the shape of those of a whole one."""
    found: dict[int, Json] = {}
    for chunk in chunks:
        for part in chunk["choices"]:
            choice = found.setdefault(
                part["index"], {"index": part["index"], "text": "", "token_ids": [], "scores": []}
            )
            delta = part.get("delta", {"content": part.get("text")})
            choice["text"] += delta.get("content") or ""
            choice["token_ids"] += part.get("token_ids") or []
            scores = part.get("logprobs") or {}
            choice["scores"] += scores.get("content") or scores.get("token_logprobs") or []
            if part.get("finish_reason"):
                choice["finish_reason"] = part["finish_reason"]
    return [found[index] for index in sorted(found)]


def whole(reply: Json) -> list[Json]:
    """The same of a reply that was not streamed."""
    listed = []
    for entry in reply["choices"]:
        scores = entry["logprobs"] or {}
        listed.append(
            {
                "index": entry["index"],
                "text": entry["message"]["content"] if "message" in entry else entry["text"],
                "token_ids": entry["token_ids"],
                "scores": scores.get("content") or scores.get("token_logprobs") or [],
                "finish_reason": entry["finish_reason"],
            }
        )
    return listed


async def streamed_chats_equal_whole_ones(target: Target) -> None:
    settings: list[Json] = [
        {"temperature": 0.0},
        {"temperature": 1.0, "seed": 4, "n": 3, "max_tokens": 40},
        {"temperature": 1.0, "seed": 5, "logprobs": True, "top_logprobs": 2},
        {"temperature": 1.0, "seed": 6, "top_p": 0.8, "stop": ["a", "an o", "\n"]},
    ]
    for given in settings:
        body = target.chat_body(return_token_ids=True, **{"max_tokens": 24, **given})
        chunks = await events(target, "/v1/chat/completions", body)
        reply = (await target.raw("POST", "/v1/chat/completions", body)).json()
        assert put_together(chunks) == whole(reply)
        assert chunks[0]["prompt_token_ids"] == reply["prompt_token_ids"]
        assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        assert len({chunk["id"] for chunk in chunks}) == 1
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


async def streamed_completions_equal_whole_ones(target: Target) -> None:
    settings: list[Json] = [
        {"prompt": "Goal: craft", "temperature": 0.0},
        {"prompt": ["Goal:", "Got 1"], "temperature": 1.0, "seed": 4, "n": 2, "logprobs": 1},
        {"prompt": "Goal:", "temperature": 1.0, "seed": 4, "echo": True, "logprobs": 1},
    ]
    for given in settings:
        body = {"model": target.model, "max_tokens": 16, "return_token_ids": True, **given}
        chunks = await events(target, "/v1/completions", body)
        reply = (await target.raw("POST", "/v1/completions", body)).json()
        assert put_together(chunks) == whole(reply)


async def counts_come_last_where_they_are_wanted(target: Target) -> None:
    body = target.chat_body(temperature=0.0, stream_options={"include_usage": True})
    *chunks, last = await events(target, "/v1/chat/completions", body)
    del body["stream_options"]
    reply = (await target.raw("POST", "/v1/chat/completions", body)).json()
    assert last["choices"] == []
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert last["usage"][name] == reply["usage"][name]
    assert all(chunk.get("usage") is None for chunk in chunks)
    bare = await events(target, "/v1/chat/completions", body)
    assert all("usage" not in chunk for chunk in bare)


async def faults_are_told_before_the_stream(target: Target) -> None:
    for fields, status in (
        ({"temperature": -1}, 400),
        ({"model": "other"}, 404),
        ({"stream_options": {"guess": True}}, 400),
        ({"messages": [{"role": "user", "content": "oak " * 4 * target.max_model_len}]}, 400),
    ):
        body = target.chat_body(stream=True, **fields)
        answer = await target.raw("POST", "/v1/chat/completions", body)
        assert answer.status_code == status, answer.text
        assert "error" in answer.json()
    answer = await target.raw(
        "POST", "/v1/chat/completions", target.chat_body(stream_options={"include_usage": True})
    )
    assert answer.status_code == 400


STREAMING: tuple[Callable[[Target], Awaitable[None]], ...] = (
    streamed_chats_equal_whole_ones,
    streamed_completions_equal_whole_ones,
    counts_come_last_where_they_are_wanted,
    faults_are_told_before_the_stream,
)
