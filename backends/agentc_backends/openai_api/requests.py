"""Reads requests of OpenAI's API; what a server does not honour is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request

from agentc_backends.openai_api.conversation import (
    MAX_MESSAGES,
    MAX_ROLE_LETTERS,
    TOOL_FIELDS,
    Message,
    ToolUse,
    read_messages,
    read_tool_use,
)
from agentc_backends.openai_api.text_model import Sampling
from agentc_backends.openai_api.values import (
    ApiError,
    flag,
    integer,
    invalid_value,
    number,
    parse_body,
    refuse_unknown,
    require_model,
)

MAX_BODY_BYTES = 16 << 20
MAX_CHOICES = 128
MAX_ALTERNATIVES = 20
MAX_PROMPTS = 256
MAX_SEQUENCES = 1024
"""Prompts times choices of one request."""
MAX_STOPS = 64
MAX_STOP_LETTERS = 4096
MAX_REPORTED = 1 << 20
"""Log-probabilities, alternatives included, that one reply may hold: some 300 MB of objects."""
_UNLIMITED = 1 << 40
"""Tokens of a chat reply when no limit is given; the context is the limit then."""

_SAMPLING_FIELDS = frozenset(
    {"model", "temperature", "top_p", "max_tokens", "stop", "seed", "n", "logprobs", "stream"}
    | {"stream_options", "ignore_eos", "return_token_ids"}
)
CHAT_FIELDS = (
    _SAMPLING_FIELDS
    | TOOL_FIELDS
    | {
        "messages",
        "max_completion_tokens",
        "top_logprobs",
        "add_generation_prompt",
        "continue_final_message",
    }
)
COMPLETION_FIELDS = _SAMPLING_FIELDS | {"prompt", "echo", "add_special_tokens"}
TOKENIZE_FIELDS = frozenset(
    {"model", "prompt", "messages", "tools", "add_special_tokens"}
    | {"add_generation_prompt", "continue_final_message"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """How messages become a prompt."""

    add_generation_prompt: bool
    continue_final_message: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """A reply in events; `usage`: with a last one that counts tokens."""

    usage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    messages: list[Message]
    template: PromptTemplate
    tools: ToolUse
    sampling: Sampling
    token_ids: bool
    stream: Streaming | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCall:
    """`prompts` holds texts or lists of token ids."""

    prompts: list[str | list[int]]
    sampling: Sampling
    echo: bool
    add_special_tokens: bool
    token_ids: bool
    stream: Streaming | None


async def read_object(request: Request) -> dict[str, Any]:
    """The JSON object of a POST; fields given as null count as absent."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            raise ApiError(413, f"the body is over {MAX_BODY_BYTES} bytes", "too_large")
    body = parse_body(data)
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object", "invalid_json")
    return {name: value for name, value in body.items() if value is not None}


def require_bounded(body: Mapping[str, Any]) -> None:
    """Raise when a chat or completion asks for more than one request may, whatever else it says:
    for a server that parses it by itself. Lists and numbers alone are looked at."""
    for name, most in (("messages", MAX_MESSAGES), ("stop", MAX_STOPS)):
        value = body.get(name)
        if isinstance(value, list) and len(value) > most:
            raise invalid_value(name, f"has {len(value)} entries, over {most}")
    _require_short_texts(body)
    highest = {"n": MAX_CHOICES, "best_of": MAX_CHOICES, "top_logprobs": MAX_ALTERNATIVES,
               "prompt_logprobs": MAX_ALTERNATIVES}  # fmt: skip
    highest |= {} if isinstance(body.get("logprobs"), bool) else {"logprobs": MAX_ALTERNATIVES}
    for name, most in highest.items():
        value = body.get(name)
        if isinstance(value, (int, float)) and value > most:
            raise invalid_value(name, f"must lie in [0, {most}], is {value}")
    _require_few_prompts(body)


def _require_short_texts(body: Mapping[str, Any]) -> None:
    """Texts that end a reply, and roles."""
    stop = body.get("stop")
    for text in stop if isinstance(stop, list) else [stop]:
        if isinstance(text, str) and len(text) > MAX_STOP_LETTERS:
            raise invalid_value("stop", f"a text is over {MAX_STOP_LETTERS} letters")
    for message in _items(body.get("messages")):
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(role, str) and len(role) > MAX_ROLE_LETTERS:
            raise invalid_value("messages", f"a role is over {MAX_ROLE_LETTERS} letters")


def _require_few_prompts(body: Mapping[str, Any]) -> None:
    """Prompts of one request, and the replies to all of them."""
    prompts = _items(body.get("prompt"))
    if prompts and isinstance(prompts[0], int):
        prompts = []  # A list of numbers is one prompt.
    if len(prompts) > MAX_PROMPTS:
        raise invalid_value("prompt", f"{len(prompts)} prompts in one request, over {MAX_PROMPTS}")
    choices = body.get("n")
    sequences = len(prompts) * choices if isinstance(choices, int) else 0
    if sequences > MAX_SEQUENCES:
        raise invalid_value(
            "prompt", f"{sequences} replies (prompts times n), over {MAX_SEQUENCES}"
        )


def _items(value: Any) -> list[Any]:
    """A list, or nothing where the value is none."""
    return value if isinstance(value, list) else []


def read_chat(body: Mapping[str, Any], served: str) -> ChatCall:
    """Parse a body of /v1/chat/completions."""
    refuse_unknown(body, CHAT_FIELDS)
    require_model(body, served)
    wants = flag(body, "logprobs", False)
    alternatives = integer(body, "top_logprobs", 0, 0, MAX_ALTERNATIVES)
    if alternatives and not wants:
        raise invalid_value("top_logprobs", "needs logprobs: true")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise invalid_value(
            "max_completion_tokens", "max_tokens is its older name; give one of the two"
        )
    limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    tools = read_tool_use(body)
    sampling = _sampling(body, integer(body, limit, _UNLIMITED, 1), alternatives if wants else None)
    if tools.grammar is not None and sampling.ignore_eos:
        raise invalid_value(
            "ignore_eos", f"excludes {tools.cause}, whose replies end by themselves"
        )
    return ChatCall(
        messages=read_messages(body),
        template=read_template(body),
        tools=tools,
        sampling=replace(sampling, grammar=tools.grammar),
        token_ids=flag(body, "return_token_ids", False),
        stream=read_stream(body),
    )


def read_completion(body: Mapping[str, Any], served: str) -> CompletionCall:
    """Parse a body of /v1/completions."""
    refuse_unknown(body, COMPLETION_FIELDS)
    require_model(body, served)
    logprobs = integer(body, "logprobs", 0, 0, MAX_ALTERNATIVES) if "logprobs" in body else None
    echo = flag(body, "echo", False)
    limit = integer(body, "max_tokens", 16, 0)
    if limit == 0 and not echo:
        raise invalid_value("max_tokens", "0 is of use only with echo: true")
    prompts = _prompts(body)
    sampling = _sampling(body, limit, logprobs)
    if len(prompts) * sampling.n > MAX_SEQUENCES:
        raise invalid_value(
            "prompt",
            f"{len(prompts)} prompts with n: {sampling.n} each are more than {MAX_SEQUENCES} "
            "replies; send several requests",
        )
    return CompletionCall(
        prompts=prompts,
        sampling=sampling,
        echo=echo,
        add_special_tokens=flag(body, "add_special_tokens", True),
        token_ids=flag(body, "return_token_ids", False),
        stream=read_stream(body),
    )


def read_stream(body: Mapping[str, Any]) -> Streaming | None:
    """Whether the reply is wanted in events, and how."""
    streamed = flag(body, "stream", False)
    options = body.get("stream_options")
    if options is None:
        return Streaming(usage=False) if streamed else None
    if not streamed:
        raise invalid_value("stream_options", "needs stream: true")
    if not isinstance(options, dict) or set(options) - {"include_usage"}:
        raise invalid_value(
            "stream_options", "must be {include_usage: true or false}, nothing else"
        )
    return Streaming(usage=flag(options, "include_usage", False))


def require_reportable(prompts: int, length: int, sampling: Sampling, *, echo: bool) -> None:
    """Raise when log-probabilities of that many prompts of this length would be too many."""
    if sampling.logprobs is None:
        return
    positions = sampling.n * (sampling.max_tokens + (length if echo else 0))
    reported = prompts * positions * (1 + sampling.logprobs)
    if reported > MAX_REPORTED:
        raise invalid_value(
            "logprobs",
            f"the reply could hold {reported} log-probabilities, over {MAX_REPORTED}; ask for "
            "fewer alternatives, prompts or choices, or for a lower max_tokens",
        )


def read_template(body: Mapping[str, Any]) -> PromptTemplate:
    """The template switches of a chat or tokenize request."""
    continued = flag(body, "continue_final_message", False)
    opening = flag(body, "add_generation_prompt", not continued)
    if continued and opening:
        raise invalid_value("continue_final_message", "excludes add_generation_prompt: true")
    return PromptTemplate(add_generation_prompt=opening, continue_final_message=continued)


def _sampling(body: Mapping[str, Any], max_tokens: int, logprobs: int | None) -> Sampling:
    top_p = number(body, "top_p", 1.0, 0.0, 1.0)
    if top_p == 0.0:
        raise invalid_value("top_p", "must be above 0")
    return Sampling(
        max_tokens=max_tokens,
        temperature=number(body, "temperature", 1.0, 0.0, 100.0),
        top_p=top_p,
        stop=_stop(body),
        seed=integer(body, "seed", 0, -(2**63), 2**63 - 1) if "seed" in body else None,
        n=integer(body, "n", 1, 1, MAX_CHOICES),
        logprobs=logprobs,
        ignore_eos=flag(body, "ignore_eos", False),
    )


def _stop(body: Mapping[str, Any]) -> tuple[str, ...]:
    value = body.get("stop", [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(t, str) and t for t in texts):
        raise invalid_value("stop", "must be a text or a list of texts, none empty")
    if len(texts) > MAX_STOPS or any(len(t) > MAX_STOP_LETTERS for t in texts):
        raise invalid_value(
            "stop", f"at most {MAX_STOPS} texts of at most {MAX_STOP_LETTERS} letters"
        )
    return tuple(texts)


def _prompts(body: Mapping[str, Any]) -> list[str | list[int]]:
    value = body.get("prompt")
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value:
        # A list of numbers is one prompt, whose length the context bounds.
        if len(value) > MAX_PROMPTS and not isinstance(value[0], int):
            raise invalid_value(
                "prompt",
                f"{len(value)} prompts in one request, over {MAX_PROMPTS}; send several requests",
            )
        if all(isinstance(item, str) for item in value):
            return list(value)
        if _token_ids(value):
            return [value]
        if all(_token_ids(item) for item in value):
            return list(value)
    raise invalid_value("prompt", "must be a text, a list of token ids, or a list of either")


def _token_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, int) and not isinstance(item, bool) for item in value)
    )
