"""ChatClient: chat, completion, scoring and tokenizing on OpenAI-compatible servers;
EmbeddingClient: features of pictures, from a server of ours that makes them (`servers/encoder`)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from agentc_backends.clients.errors import (
    ContextOverflowError,
    InfrastructureError,
    ReplyRoomError,
)
from agentc_backends.clients.request_policy import RateLimits, RetryPolicy
from agentc_backends.clients.transport import Timeouts, Transport
from agentc_backends.data.chat.tool_calls import request_of, tools_of_row

_LETTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """A token's text and its natural-log probability (None at the start of a text)."""

    token: str
    logprob: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """One reply. `finish_reason` is "stop" (its end or a stop text) or "length" (cut at
    max_tokens). `logprobs` and `token_ids` have one entry for each generated token where they were
    asked for: the tokens of the end and of a stop text, which `text` lacks, included."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    logprobs: tuple[ScoredToken, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    stopped_by: str | None = None
    """The stop text that ended it, where the server says so."""


class ChatClient:
    """An asynchronous client of one model on one or more replicas of a server.

    `url` may end in /v1 or not. Every method raises InfrastructureError, BadRequestError or
    ContextOverflowError, and EchoedSecretError where it is `guarded` and a reply holds the token.
    Calls with the same `affinity` go to the same replica. Where a prompt fits and its `max_tokens`
    do not, the server is asked once more, for what it has room for.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | None,
        model: str,
        *,
        retry: RetryPolicy | None = None,
        limits: RateLimits | None = None,
        timeouts: Timeouts | None = None,
        direct: bool = False,
        guarded: bool = False,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        self.model = model
        self._transport = Transport(
            [u.rstrip("/").removesuffix("/v1") for u in urls],
            token,
            retry=retry or RetryPolicy(),
            limits=limits or RateLimits(),
            timeouts=timeouts or Timeouts(),
            direct=direct,
            guarded=guarded,
        )

    async def __aenter__(self) -> ChatClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        logprobs: bool = False,
        token_ids: bool = False,
        affinity: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """The model's next message, with its calls as it wrote them where the first message has
        functions (`data/chat/tool_calls.py`). `token_ids` asks what vLLM and servers of ours know
        beyond OpenAI's API; `extra` adds other fields that only some servers know."""
        body: dict[str, Any] = {
            **_conversation(messages),
            **_sampling(temperature, top_p, max_tokens, stop, seed),
            **(extra or {}),
        }
        if logprobs:
            body["logprobs"] = True
        if token_ids:
            body["return_token_ids"] = True
        letters = sum(map(_letters, messages))
        path = "/v1/chat/completions"
        answer = await self._generated(path, body, letters, max_tokens, affinity)
        choice = _first_choice(answer)
        return _reply(answer, choice, _content(choice), _chat_scores(choice))

    async def complete(
        self,
        prompt: str | Sequence[int],
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 16,
        stop: Sequence[str] = (),
        seed: int | None = None,
        logprobs: bool = False,
        affinity: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """A continuation of a text, or of token ids."""
        body: dict[str, Any] = {
            "prompt": _prompt(prompt),
            **_sampling(temperature, top_p, max_tokens, stop, seed),
            **(extra or {}),
        }
        if logprobs:
            body["logprobs"] = 0
        path = "/v1/completions"
        answer = await self._generated(path, body, len(prompt), max_tokens, affinity)
        choice = _first_choice(answer)
        return _reply(answer, choice, str(choice.get("text", "")), _completion_scores(choice))

    async def score(self, prompt: str | Sequence[int], *, affinity: str = "") -> list[ScoredToken]:
        """Log-probabilities of given tokens, each given those before it; the first has none."""
        body = {"prompt": _prompt(prompt), "max_tokens": 0, "echo": True, "logprobs": 0}
        answer = await self._post("/v1/completions", body, len(prompt), 0, affinity)
        scores = _completion_scores(_first_choice(answer))
        if scores is None:
            raise InfrastructureError("the server did not score the text that it was given")
        return list(scores)

    async def tokenize(
        self,
        text: str | Sequence[Mapping[str, Any]],
        *,
        add_special_tokens: bool = False,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
    ) -> list[int]:
        """Token ids of a text, or of messages in the model's chat format."""
        body: dict[str, Any] = {"model": self.model}
        if isinstance(text, str):
            body |= {"prompt": text, "add_special_tokens": add_special_tokens}
        else:
            body |= _conversation(text) | {"add_generation_prompt": add_generation_prompt}
            if continue_final_message:
                body["continue_final_message"] = True
            body.pop("tool_choice", None)
        answer = await self._transport.call("POST", "/tokenize", body)
        return [int(token) for token in answer["tokens"]]

    async def models(self) -> list[dict[str, Any]]:
        """What the server serves: entries with `id` and, of local servers, `root`."""
        answer = await self._transport.call("GET", "/v1/models")
        return list(answer["data"])

    async def _generated(
        self, path: str, body: dict[str, Any], size: int, max_tokens: int | None, affinity: str
    ) -> dict[str, Any]:
        """The answer; of as many tokens as the context has room for where `max_tokens` are more."""
        try:
            return await self._post(path, body, size, max_tokens, affinity)
        except ReplyRoomError as error:
            # Without a number the server takes what is left, which is less than was requested.
            body = {**body, "max_tokens": error.room}
            return await self._post(path, body, size, error.room, affinity)

    async def _post(
        self, path: str, body: dict[str, Any], size: int, max_tokens: int | None, affinity: str
    ) -> dict[str, Any]:
        expected = size / _LETTERS_PER_TOKEN + (max_tokens or 0)
        answer = await self._transport.call(
            "POST", path, {"model": self.model, **body}, key=affinity, cost=expected
        )
        if not isinstance(answer, dict):
            raise InfrastructureError(f"{path}: the reply is not an object")
        used = (answer.get("usage") or {}).get("total_tokens")
        if used is not None:
            self._transport.gate.correct_charge(expected, float(used))
        return answer


def _prompt(prompt: str | Sequence[int]) -> str | list[int]:
    return prompt if isinstance(prompt, str) else list(prompt)


def _conversation(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a conversation. Where it has functions the server is to show them to the model
    and to leave the reply as it is: one that was read and written anew might be other tokens."""
    if not tools_of_row(messages):
        return {"messages": [dict(message) for message in messages]}
    said, tools = request_of(messages)
    return {"messages": said, "tools": list(tools), "tool_choice": "none"}


def _sampling(
    temperature: float,
    top_p: float,
    max_tokens: int | None,
    stop: Sequence[str],
    seed: int | None,
) -> dict[str, Any]:
    """Fields of a request; what is at the API's own default for "none" is left out."""
    body: dict[str, Any] = {"temperature": temperature, "top_p": top_p}
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    if stop:
        body["stop"] = [stop] if isinstance(stop, str) else list(stop)
    if seed is not None:
        body["seed"] = seed
    return body


def _first_choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices:
        raise InfrastructureError(f"a reply without choices: {str(answer)[:200]}")
    first: Mapping[str, Any] = choices[0]
    return first


def _letters(message: Mapping[str, Any]) -> int:
    """Of its text; a message may be parts, some of which are pictures."""
    content = message["content"]
    if isinstance(content, str):
        return len(content)
    return sum(len(part.get("text", "")) for part in content)


def _content(choice: Mapping[str, Any]) -> str:
    return str((choice.get("message") or {}).get("content") or "")


def _reply(
    answer: Mapping[str, Any],
    choice: Mapping[str, Any],
    text: str,
    logprobs: tuple[ScoredToken, ...] | None,
) -> ChatReply:
    usage = answer.get("usage") or {}
    reply = ChatReply(
        text=text,
        finish_reason=str(choice.get("finish_reason")),
        prompt_tokens=int(usage.get("prompt_tokens", 0)),
        completion_tokens=int(usage.get("completion_tokens", 0)),
        logprobs=logprobs,
        token_ids=_token_ids(choice),
        stopped_by=reason if isinstance(reason := choice.get("stop_reason"), str) else None,
    )
    if usage and reply.completion_tokens == 0 and reply.finish_reason == "length":
        # What vLLM answers to a prompt that fills the context to its last token.
        raise ContextOverflowError(
            f"no room for a reply after {reply.prompt_tokens} prompt tokens", status=200
        )
    return reply


def _token_ids(choice: Mapping[str, Any]) -> tuple[int, ...] | None:
    ids = choice.get("token_ids")
    return None if ids is None else tuple(int(token) for token in ids)


def _chat_scores(choice: Mapping[str, Any]) -> tuple[ScoredToken, ...] | None:
    content = (choice.get("logprobs") or {}).get("content")
    if content is None:
        return None
    return tuple(ScoredToken(entry["token"], entry["logprob"]) for entry in content)


def _completion_scores(choice: Mapping[str, Any]) -> tuple[ScoredToken, ...] | None:
    scores = choice.get("logprobs")
    if scores is None:
        return None
    pairs = zip(scores["tokens"], scores["token_logprobs"], strict=True)
    return tuple(ScoredToken(token, logprob) for token, logprob in pairs)


class EmbeddingClient:
    """An asynchronous client of one encoder. Its calls raise InfrastructureError and
    BadRequestError."""

    def __init__(self, transport: Transport, model: str) -> None:
        self._transport, self._model = transport, model

    async def features(self, picture: bytes) -> tuple[float, ...]:
        """Of one picture, as the model projects them."""
        body = {"model": self._model, "images": [base64.b64encode(picture).decode()]}
        answer: Any = await self._transport.call("POST", "/v1/embeddings", body)
        match answer:
            case {"data": [{"embedding": [_, *_] as found}]} if all(
                isinstance(each, int | float) for each in found
            ):
                return tuple(map(float, found))
        raise InfrastructureError("/v1/embeddings answers without features")
