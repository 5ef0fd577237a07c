"""Writes replies in OpenAI's shapes: text, calls of functions, log-probabilities, usage, errors."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from starlette.responses import Response

from agentc_backends.data.chat.tool_calls import ToolCall, ToolCallReader
from agentc_backends.openai_api.conversation import ToolUse
from agentc_backends.openai_api.text_model import Choice, TokenScore
from agentc_backends.openai_api.values import ApiError

Decode = Callable[[Sequence[int]], str]


class JsonReply(Response):
    """JSON in ASCII, so that a lone surrogate in a text cannot break a reply."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return as_json(content)


def as_json(content: object) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def error_body(error: ApiError) -> dict[str, Any]:
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    body = {"message": error.message, "type": kind, "param": error.param, "code": error.code}
    return {"error": body}


def error_reply(error: ApiError) -> JsonReply:
    return JsonReply(error_body(error), error.status)


def chat_reply(
    model: str,
    prompt: Sequence[int],
    choices: Sequence[Choice],
    decode: Decode,
    tools: ToolUse,
    token_ids: bool,
) -> dict[str, Any]:
    """The body of a chat completion; log-probs when the choices carry scores."""
    listed = []
    for index, choice in enumerate(choices):
        message, reason = chat_message(prompt, index, choice, tools)
        entry: dict[str, Any] = {
            "index": index,
            "message": message,
            "finish_reason": reason,
            "logprobs": chat_scores(choice, decode),
        }
        if token_ids:
            entry["token_ids"] = list(choice.tokens)
        if choice.stop_reason is not None:  # vLLM's word
            entry["stop_reason"] = choice.stop_reason
        listed.append(entry)
    reply = _reply("chat.completion", model, listed, len(prompt), choices)
    if token_ids:
        reply["prompt_token_ids"] = list(prompt)
    return reply


def completion_entry(
    index: int,
    choice: Choice,
    decode: Decode,
    *,
    prompt: Sequence[int],
    echoed: tuple[str, Sequence[TokenScore]] | None,
    logprobs: bool,
    token_ids: bool,
) -> dict[str, Any]:
    """One choice of a text completion; `echoed` is the prompt's text with its scores."""
    text, before = echoed if echoed is not None else ("", ())
    entry: dict[str, Any] = {
        "index": index,
        "text": text + choice.text,
        "finish_reason": choice.finish_reason,
        "logprobs": None,
    }
    if logprobs:
        entry["logprobs"] = completion_scores([*before, *choice.scores], decode)
    if token_ids:
        entry["token_ids"] = list(choice.tokens)
        entry["prompt_token_ids"] = list(prompt)
    return entry


def completion_reply(
    model: str, entries: list[dict[str, Any]], prompt_tokens: int, choices: Sequence[Choice]
) -> dict[str, Any]:
    return _reply("text_completion", model, entries, prompt_tokens, choices)


def _reply(
    kind: str,
    model: str,
    entries: list[dict[str, Any]],
    prompt_tokens: int,
    choices: Sequence[Choice],
) -> dict[str, Any]:
    return {**envelope(kind, model), "choices": entries, "usage": usage(prompt_tokens, choices)}


def envelope(kind: str, model: str) -> dict[str, Any]:
    """What a reply, and each chunk of one, begins with."""
    return {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
    }


def usage(prompt_tokens: int, choices: Sequence[Choice]) -> dict[str, int]:
    generated = sum(len(choice.tokens) for choice in choices)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": generated,
        "total_tokens": prompt_tokens + generated,
    }


def chat_scores(choice: Choice, decode: Decode) -> dict[str, Any] | None:
    """The log-probs of a chat's choice, where it carries scores."""
    if not choice.scores:
        return None
    return {"content": [_chat_score(score, decode) for score in choice.scores]}


def _chat_score(score: TokenScore, decode: Decode) -> dict[str, Any]:
    return {
        **_named(score.token, score.logprob, decode),
        "top_logprobs": [_named(token, value, decode) for token, value in score.top],
    }


def _named(token: int, logprob: float | None, decode: Decode) -> dict[str, Any]:
    text = decode([token])
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}


def completion_scores(scores: Sequence[TokenScore], decode: Decode) -> dict[str, Any]:
    """The log-probs of a text completion, of its echoed prompt too."""
    texts = [decode([score.token]) for score in scores]
    offsets, at = [], 0
    for text in texts:
        offsets.append(at)
        at += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [score.logprob for score in scores],
        "text_offset": offsets,
        "top_logprobs": [
            None
            if score.logprob is None
            else {decode([t]): value for t, value in (*score.top, (score.token, score.logprob))}
            for score in scores
        ],
    }


class ReplyParts:
    """One choice. Ids of calls follow from the prompt, the place and the call, so that a request
    that is made again, streamed or not, gets them again."""

    def __init__(self, prompt: Sequence[int], index: int, tools: ToolUse) -> None:
        self._seed = array("q", [*prompt, index]).tobytes()
        self._several = tools.several
        self._reader = ToolCallReader() if tools.read else None
        self.calls: list[dict[str, Any]] = []

    def add(self, text: str) -> list[dict[str, Any]]:
        """The deltas that are certain with this piece of text."""
        if self._reader is None:
            return [{"content": text}] if text else []
        return self._deltas(self._reader.add(text))

    def end(self) -> list[dict[str, Any]]:
        """The deltas that are left."""
        return [] if self._reader is None else self._deltas(self._reader.end())

    def finish_reason(self, choice: Choice) -> str:
        """Why the reply ended, once all of it has been read."""
        stopped = choice.finish_reason == "stop"
        return "tool_calls" if stopped and self.calls else choice.finish_reason

    def _deltas(self, parts: Iterable[str | ToolCall]) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, str):
                deltas.append({"content": part})
            elif self._several or not self.calls:
                place = len(self.calls)
                self.calls.append(self._call(part, place))
                deltas.append({"tool_calls": [{"index": place, **self.calls[-1]}]})
        return deltas

    def _call(self, call: ToolCall, place: int) -> dict[str, Any]:
        text = f"\0{place}\0{call.name}\0{call.arguments}".encode("utf-8", "surrogatepass")
        number = hashlib.sha256(self._seed + text).hexdigest()[:24]
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": f"call_{number}", "type": "function", "function": function}


def chat_message(
    prompt: Sequence[int], index: int, choice: Choice, tools: ToolUse
) -> tuple[dict[str, Any], str]:
    """A whole reply's message, and why it ended."""
    parts = ReplyParts(prompt, index, tools)
    deltas = [*parts.add(choice.text), *parts.end()]
    text = "".join(delta.get("content", "") for delta in deltas)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if parts.calls:
        message |= {"content": text or None, "tool_calls": parts.calls}
    return message, parts.finish_reason(choice)
