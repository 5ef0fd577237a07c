"""What can go wrong with a service, told apart by who must act, and how refusals of model servers
that are about length are recognised.

An `InfrastructureError` says nothing about the agent: an episode that ends in one has no reward.
The others are facts about the request. Servers refuse for length in words: those of vLLM, SGLang,
llama.cpp, TGI, OpenAI and of proxies before them are in the tables below, and
`tests/backends/client/test_refusals.py` has them in full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ServiceError(Exception):
    """Any failure of a call; the message names the address and what it said."""


class InfrastructureError(ServiceError):
    """The service is dead, unreachable, overloaded or too slow, or answers nonsense."""


class BadRequestError(ServiceError):
    """The service refuses the request for good (4xx). `status` is HTTP's, `code` the service's
    own word for it, `param` the field it names."""

    def __init__(
        self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


class ContextOverflowError(BadRequestError):
    """The prompt does not fit into the model's context, or leaves no room for a reply."""


class ReplyRoomError(ContextOverflowError):
    """The prompt fits, with less room behind it than the `max_tokens` of the request: `room`
    tokens, or None where the server does not say how many. Clients ask again with it, once."""

    def __init__(
        self,
        message: str,
        *,
        room: int | None,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code, param=param)
        self.room = room


class EchoedSecretError(ServiceError):
    """A reply holds the key that the endpoint was sent. Asking again would not help."""


class EnvironmentServerError(ServiceError):
    """An environment server reports an error of its own in a reply that looks like success."""


def message_without_quote(error: ServiceError) -> str:
    """What failed, without what the service said, which may quote the request: for requests that
    hold what whoever reads the message is not to know."""
    status = f", status {error.status}" if isinstance(error, BadRequestError) else ""
    return f"{type(error).__name__}{status} (its answer is withheld: it may quote the request)"


_CODES = ("context_length_exceeded", "exceed_context_size_error", "context_window_exceeded")


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


_N = r"(\d+)"
_CONTEXT = _compiled(
    rf"maximum context length (?:is|of) {_N}",
    rf"maximum context length \({_N}\)",
    rf"model'?s context length \({_N} tokens\)",
    rf"context length is only {_N}",
    rf"available context size \({_N} tokens\)",
    rf"context window limit \({_N}\)",
    rf"context window of {_N}",
    rf"exceed context limit: \d+ \+ \d+ > {_N}",
    rf"`max_new_tokens` must be <= {_N}",
    rf"max_(?:model_len|total_tokens)=(?:max_total_tokens=)?{_N}",
    rf'"n_ctx"\s*:\s*{_N}',
)
_PROMPT = _compiled(
    rf"request has {_N} input tokens",
    rf"{_N} tokens from the input messages",
    rf"Given: {_N} `inputs` tokens",
    rf"exceed context limit: {_N} \+ \d+",
    rf"messages resulted in {_N} tokens",
    rf"input \({_N} tokens\)",
    rf"input length \(?{_N}\)?",
    rf"request \({_N} tokens\)",
    rf"tokens \({_N}\) exceed context window",
    rf'"n_prompt_tokens"\s*:\s*{_N}',
)
_AT_LEAST = _compiled(
    rf"prompt contains at least {_N} input tokens",
    rf"passed {_N} input tokens and requested",
)
"""Numbers of tokens that vLLM stopped to count at: the prompt may have more."""
_SUM = (
    # Of the whole request, and of the reply in it.
    re.compile(
        rf"requested (?:about )?{_N} tokens "
        rf"\(.*?{_N} (?:in|for) +(?:the|your) (?:completion|output)",
        re.IGNORECASE | re.DOTALL,
    ),
)
_SUM_ALONE = re.compile(
    rf"estimated number of input and maximum output tokens \({_N}\)", re.IGNORECASE
)
_NO_ROOM = _compiled(
    r"max_tokens must be at least 1, got (?:0|-\d+)",
    r"exceeds the available context size",
    r"exceeds? the context window of this model",
    r"tokens exceed the configured limit",
    r"exceed context window of",
    r"is longer than the maximum model length",
    r"too long to fit into the model",
    r"is longer than the model'?s context length",
    r"`inputs` must have less than",
    r"prompt is too long",
    r"input is too long for (?:the )?(?:requested )?model",
    r"exceeds the maximum allowed (?:input )?length",
    r"exceeds the maximum number of tokens allowed",
    r"maximum prompt length is \d+",
    r"too large for model with",
    r"greater than the context length",
    r"exceeded model token limit",
)
"""Said of prompts that leave no room for a single token."""
_OTHER_SHARE = _compiled(
    # The size of the prompt is not known: the server refused before it had counted.
    r"input characters and requested \d+ output tokens",
    r"output tokens and your prompt contains \d+ characters",
    r"max_(?:completion_|output_)?tokens=\d+ ?cannot be greater than max_",
    r"reduce the length of the messages or completion",
)
_LENGTH = re.compile(r"maximum context length|exceed context limit", re.IGNORECASE)
_STRICT = re.compile(r"Requested token count exceeds", re.IGNORECASE)
"""SGLang: prompt and reply together stay below the context."""


@dataclass(frozen=True, slots=True)
class LengthRefusal:
    """What a refusal says of the room: `fits` is false where the prompt alone leaves none. `room`
    is the number of tokens that a reply may have; None where the server does not say."""

    fits: bool
    room: int | None = None


NO_ROOM = LengthRefusal(False)
SOME_ROOM = LengthRefusal(True)


def length_refusal(
    code: object, message: str, requested: int | None = None
) -> LengthRefusal | None:
    """What a refusal with this code and message says of length; None where it is about something
    else. `requested` is the request's `max_tokens`."""
    context, prompt = _first(_CONTEXT, message), _first(_PROMPT, message)
    if context is not None and prompt is None:
        prompt = _prompt_of_sum(message, requested)
    if context is not None and prompt is not None:
        if _STRICT.search(message):
            context -= 1
        return LengthRefusal(True, context - prompt) if prompt < context else NO_ROOM
    if any(pattern.search(message) for pattern in _NO_ROOM):
        return NO_ROOM
    at_least = _first(_AT_LEAST, message)
    if context is not None and at_least is not None:
        return SOME_ROOM if at_least < context else NO_ROOM
    if any(pattern.search(message) for pattern in _OTHER_SHARE):
        return SOME_ROOM
    return NO_ROOM if str(code) in _CODES or _LENGTH.search(message) else None


def refusal_fields(body: bytes) -> tuple[Mapping[str, Any], str | None]:
    """The fields of a refusal's error, and its message where it has one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}, None
    error = value.get("error", value) if isinstance(value, dict) else None
    if isinstance(error, str):
        return {}, error
    fields: Mapping[str, Any] = error if isinstance(error, dict) else {}
    errors = fields.get("errors")
    if not fields.get("message") and isinstance(errors, list) and errors:
        # As Cloudflare says it.
        fields = errors[0] if isinstance(errors[0], dict) else fields
    message = fields.get("message")
    return fields, None if not message else str(message)


def read_refusal(body: bytes, requested: int | None = None) -> LengthRefusal | None:
    """`length_refusal` of the body of a reply."""
    fields, message = refusal_fields(body)
    text = message or body.decode("utf-8", "replace")
    # llama.cpp has its own word in `type`, and counts beside the message.
    for code in (fields.get("code"), fields.get("type")):
        found = length_refusal(code, text, requested)
        if found is not None:
            return found
    return None


def _first(patterns: tuple[re.Pattern[str], ...], message: str) -> int | None:
    matches = (pattern.search(message) for pattern in patterns)
    match = next(filter(None, matches), None)
    return None if match is None else int(match.group(1))


def _prompt_of_sum(message: str, requested: int | None) -> int | None:
    """The prompt's tokens where only those of the whole request are named."""
    for pattern in _SUM:
        match = pattern.search(message)
        if match is not None:
            return int(match.group(1)) - int(match.group(2))
    match = _SUM_ALONE.search(message)
    return None if match is None or requested is None else int(match.group(1)) - requested
