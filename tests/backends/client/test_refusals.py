"""What servers say of a request that is too long: only a prompt that leaves no room is an
overflow; otherwise the same request is sent once more with the room as its limit."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from answering import Answer, Serve

from agentc_backends import clients
from agentc_backends.agents.recording.relay import LeasedModel
from agentc_backends.clients.errors import (
    LengthRefusal,
    ReplyRoomError,
    length_refusal,
    read_refusal,
)

ASKED = 50
NONE, SOME = LengthRefusal(False), LengthRefusal(True)


def room(tokens: int) -> LengthRefusal:
    return LengthRefusal(True, tokens)


CLASSIC = "This model's maximum context length is 100 tokens. "
LITELLM = "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - "
REFUSALS: dict[str, tuple[str, LengthRefusal | None]] = {
    # OpenAI, vLLM to 0.10, DeepSeek, llama-cpp-python.
    "messages and completion": (
        CLASSIC + "However, you requested 130 tokens (80 in the messages, 50 in the completion). "
        "Please reduce the length of the messages or completion.", room(20)),
    "prompt and completion": (
        "This model's maximum context length is 100 tokens, however you requested 130 tokens (80 "
        "in your prompt; 50 for the completion). Please reduce your prompt; or completion length.",
        room(20)),
    "functions": (
        CLASSIC + "However, you requested 130 tokens (60 in the messages, 20 in the functions, and "
        "50 in the completion). Please reduce the length of the messages, functions, or "
        "completion.", room(20)),
    "messages too long": (
        CLASSIC + "However, you requested 160 tokens (110 in the messages, 50 in the completion).",
        NONE),
    "OpenAI, messages": (
        CLASSIC + "However, your messages resulted in 110 tokens. Please reduce the length of the "
        "messages.", NONE),
    "OpenAI, messages and functions": (
        CLASSIC + "However, your messages resulted in 110 tokens (100 in the messages, 10 in the "
        "functions).", NONE),
    "OpenAI, responses": ("Your input exceeds the context window of this model. Please adjust "
                          "your input and try again.", NONE),
    "OpenAI, limit": ("Input tokens exceed the configured limit of 100 tokens. Your messages "
                      "resulted in 110 tokens.", NONE),
    "OpenAI, limit of replies": ("max_tokens is too large: 50. This model supports at most 40 "
                                 "completion tokens, whereas you provided 50.", None),
    # vLLM, by release.
    "vLLM 0.10": ("'max_tokens' is too large: 50. This model's maximum context length is 100 "
                  "tokens and your request has 80 input tokens (50 > 100 - 80).", room(20)),
    "vLLM 0.11": ("'max_tokens' or 'max_completion_tokens' is too large: 50. This model's maximum "
                  "context length is 100 tokens and your request has 80 input tokens "
                  "(50 > 100 - 80).", room(20)),
    "vLLM, input tokens": (CLASSIC + "However, your request has 101 input tokens. Please reduce "
                           "the length of the input messages.", NONE),
    "vLLM 0.16": ("You passed 51 input tokens and requested 50 output tokens. However, the model's "
                  "context length is only 100 tokens, resulting in a maximum input length of 50 "
                  "tokens. Please reduce the length of the input prompt.", SOME),
    "vLLM 0.16, no room": ("You passed 101 input tokens and requested 0 output tokens. However, "
                           "the model's context length is only 100 tokens, resulting in a maximum "
                           "input length of 100 tokens.", NONE),
    "vLLM 0.16, characters": ("You passed 900 input characters and requested 50 output tokens. "
                              "However, the model's context length is only 100 tokens, resulting "
                              "in a maximum input length of 50 tokens.", SOME),
    "vLLM 0.20": (CLASSIC + "However, you requested 50 output tokens and your prompt contains at "
                  "least 51 input tokens, for a total of at least 101 tokens. Please reduce the "
                  "length of the input prompt or the number of requested output tokens. "
                  "(parameter=input_tokens, value=51)", SOME),
    "vLLM 0.20, no room": (CLASSIC + "However, you requested 0 output tokens and your prompt "
                           "contains at least 101 input tokens, for a total of at least 101 "
                           "tokens.", NONE),
    "vLLM 0.20, all of it": (CLASSIC + "However, you requested 1 output tokens and your prompt "
                             "contains at least 100 input tokens, for a total of at least 101 "
                             "tokens.", NONE),
    "vLLM 0.20, characters": (CLASSIC + "However, you requested 50 output tokens and your prompt "
                              "contains 900 characters (more than 500 characters, which is the "
                              "upper bound for 50 input tokens).", SOME),
    "vLLM, limit over context": ("max_completion_tokens=500cannot be greater than max_model_len="
                                 "max_total_tokens=100. Please request fewer output tokens.", SOME),
    "vLLM, derived": ("max_tokens must be at least 1, got -20. (parameter=max_tokens, value=-20)",
                      NONE),
    "vLLM, full": ("max_tokens must be at least 1, got 0.", NONE),
    "vLLM, engine": ("The decoder prompt (length 101) is longer than the maximum model length of "
                     "100. Make sure that `max_model_len` is no smaller than the number of text "
                     "tokens.", NONE),
    "vLLM, pictures": ("The prompt (total length 101) is too long to fit into the model (context "
                       "length 100).", NONE),
    # SGLang.
    "SGLang": ("Requested token count exceeds the model's maximum context length of 100 tokens. "
               "You requested a total of 130 tokens: 80 tokens from the input messages and 50 "
               "tokens for the completion. Please reduce the number of tokens in the input "
               "messages or the completion to fit within the limit.", room(19)),
    "SGLang, no room": ("Requested token count exceeds the model's maximum context length of 100 "
                        "tokens. You requested a total of 149 tokens: 99 tokens from the input "
                        "messages and 50 tokens for the completion.", NONE),
    "SGLang, input": ("The input (101 tokens) is longer than the model's context length (100 "
                      "tokens).", NONE),
    "SGLang, other input": ("Input length (110) exceeds model's maximum context length (100).",
                            NONE),
    "SGLang, scheduler": ("Input length (110 tokens) exceeds the maximum allowed length (94 "
                          "tokens). Use a shorter input or enable --allow-auto-truncate.", NONE),
    # llama.cpp, and what is built on it.
    "llama.cpp": ("the request exceeds the available context size, try increasing it", NONE),
    "llama.cpp, 2025": ("the request exceeds the available context size. try increasing the "
                        "context size or enable context shift", NONE),
    "llama.cpp, counts": ("request (110 tokens) exceeds the available context size (100 tokens), "
                          "try increasing it", NONE),
    "llama-cpp-python": ("Requested tokens (110) exceed context window of 100", NONE),
    "LM Studio": ("tokens to keep from the initial prompt is greater than the context length",
                  NONE),
    # TGI.
    "TGI": ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 100. Given: 80 "
            "`inputs` tokens and 50 `max_new_tokens`", room(20)),
    "TGI, no room": ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 100. "
                     "Given: 110 `inputs` tokens and 50 `max_new_tokens`", NONE),
    "TGI, input": ("Input validation error: `inputs` must have less than 100 tokens. Given: 110",
                   NONE),
    # Others, and proxies.
    "Anthropic": ("input length and `max_tokens` exceed context limit: 80 + 50 > 100, decrease "
                  "input length or `max_tokens` and try again", room(20)),
    "Anthropic, prompt": ("prompt is too long: 110 tokens > 100 maximum", NONE),
    "Cloudflare": ("AiError: Ai: The estimated number of input and maximum output tokens (130) "
                   "exceeded this model context window limit (100). (c0a7213e)", room(20)),
    "OpenRouter": ("This endpoint's maximum context length is 100 tokens. However, you requested "
                   "about 130 tokens (80 of text input, 50 in the output). Please reduce the "
                   "length of either one.", room(20)),
    "Groq": ("Please reduce the length of the messages or completion.", SOME),
    "Google": ("The input token count (110) exceeds the maximum number of tokens allowed (100)",
               NONE),
    "xAI": ("This model's maximum prompt length is 100 but the request contains 110 tokens", NONE),
    "Bedrock": ("Input is too long for requested model.", NONE),
    "no numbers": ("This model's maximum context length is 100 tokens. Please reduce the length of "
                   "the prompt", NONE),
    "LiteLLM": (LITELLM + CLASSIC + "However, you requested 130 tokens (80 in the messages, 50 in "
                "the completion).", room(20)),
    "LiteLLM, vLLM 0.20": (LITELLM + CLASSIC + "However, you requested 50 output tokens and your "
                           "prompt contains at least 51 input tokens, for a total of at least 101 "
                           "tokens.", SOME),
    "LiteLLM, prompt": (LITELLM + CLASSIC + "However, your request has 110 input tokens.", NONE),
    # Refusals about something else.
    "temperature": ("temperature must be non-negative, got -1", None),
    "no model": ("The model `gpt-5` does not exist", None),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_refusal_says_of_length(name: str) -> None:
    message, expected = REFUSALS[name]
    assert length_refusal(None, message, ASKED) == expected
    assert length_refusal(400, message.upper() if expected == NONE else message, ASKED) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "too long", "code": "context_length_exceeded"}}, NONE),
        ({"error": {"code": 400, "type": "exceed_context_size_error", "message": "no",
                    "n_prompt_tokens": 110, "n_ctx": 100}}, NONE),
        ({"object": "error", "message": REFUSALS["vLLM 0.10"][0], "code": 400}, room(20)),
        ({"error": REFUSALS["TGI"][0], "error_type": "validation"}, room(20)),
        ({"errors": [{"message": REFUSALS["Cloudflare"][0], "code": 5021}]}, room(20)),
        ({"error": {"message": json.dumps({"error": {"message": REFUSALS["SGLang"][0]}})}},
         room(19)),
        ({"error": {"message": "the model does not exist", "code": "model_not_found"}}, None),
        ([], None),
    ],
)  # fmt: skip
def test_the_shapes_of_refusals(body: Any, expected: LengthRefusal | None) -> None:
    assert read_refusal(json.dumps(body).encode(), ASKED) == expected


TALK = [{"role": "user", "content": "Goal"}]
FITS = Answer(
    body={
        "choices": [{"message": {"content": "Action: a"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100},
    }
)


def refused(name: str, status: int = 400) -> Answer:
    return Answer(status, {"error": {"message": REFUSALS[name][0], "code": status}})


def chat(url: str, **settings: Any) -> clients.ChatReply:
    async def go() -> clients.ChatReply:
        retry = clients.RetryPolicy(attempts=2, base_s=0.01)
        async with clients.ChatClient(url, None, "m", retry=retry) as one:
            return await one.chat(TALK, max_tokens=ASKED, **settings)

    return asyncio.run(go())


@pytest.mark.parametrize("name", REFUSALS)
def test_a_prompt_that_fits_is_asked_again_with_the_room(serve: Serve, name: str) -> None:
    expected = REFUSALS[name][1]
    server = serve([refused(name), FITS])
    if expected is None or not expected.fits:
        with pytest.raises(clients.BadRequestError) as caught:
            chat(server.url)
        assert isinstance(caught.value, clients.ContextOverflowError) == (expected is not None)
        assert not isinstance(caught.value, ReplyRoomError)
        assert len(server.seen) == 1
        return
    assert chat(server.url).finish_reason == "length"
    (_, first, _), (_, second, _) = server.seen
    assert (first["max_tokens"], second["max_tokens"]) == (ASKED, expected.room)
    assert {**first, "max_tokens": 0} == {**second, "max_tokens": 0}


def test_a_prompt_is_asked_for_a_second_time_once(serve: Serve) -> None:
    server = serve([refused("vLLM 0.20")])
    with pytest.raises(clients.ContextOverflowError):
        chat(server.url)
    assert len(server.seen) == 2


def test_without_a_limit_nothing_is_asked_again(serve: Serve) -> None:
    server = serve([refused("vLLM 0.10")])

    async def go() -> None:
        async with clients.ChatClient(server.url, None, "m") as one:
            await one.score("a text")

    with pytest.raises(clients.ContextOverflowError):
        asyncio.run(go())
    assert len(server.seen) == 1


def test_llama_cpp_says_it_with_a_500(serve: Serve) -> None:
    server = serve([refused("llama.cpp, 2025", 500)])
    with pytest.raises(clients.ContextOverflowError):
        chat(server.url)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("name", "requests"), [("vLLM 0.10", 2), ("vLLM 0.20", 2), ("SGLang, input", 1)]
)
def test_programs_of_others_get_the_room_too(serve: Serve, name: str, requests: int) -> None:
    server = serve([refused(name), FITS])

    async def go() -> int:
        model = LeasedModel(
            {"url": server.url, "token": "", "model": "m", "log": "x"}, concurrency=1
        )
        try:
            async with model.chat({"messages": TALK, "max_tokens": ASKED}, "e") as response:
                await response.aread()
                return response.status_code
        finally:
            await model.close()

    assert asyncio.run(go()) == (200 if requests == 2 else 400)
    assert len(server.seen) == requests
