"""Encodes texts of requests into prompts that fit the context, without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentc_backends.openai_api.conversation import Message, count_letters
from agentc_backends.openai_api.requests import PromptTemplate
from agentc_backends.openai_api.text_model import TextModel
from agentc_backends.openai_api.values import ApiError

Tools = Sequence[Mapping[str, Any]]

INLINE_LETTERS = 1 << 14
"""A text up to this long is encoded at once: a few milliseconds, less than a thread is worth."""


class PromptEncoder:
    """Encodes for one model. Long texts are encoded on a thread of their own, and what comes
    while it is busy queues behind them: a tokenizer's settings change between calls, so that two
    of them must never overlap."""

    def __init__(self, model: TextModel) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encode")
        self._busy = 0

    async def chat(
        self, conversation: Sequence[Message], template: PromptTemplate, tools: Tools
    ) -> list[int]:
        """Tokens of a conversation that fits the context."""
        code = "context_length_exceeded"
        tokens = await self.count_chat(conversation, template, tools, code)
        self._require_room(len(tokens), "messages")
        return tokens

    async def count_chat(
        self,
        conversation: Sequence[Message],
        template: PromptTemplate,
        tools: Tools = (),
        code: str = "too_large",
    ) -> list[int]:
        """Tokens of a conversation, which may be somewhat longer than the context."""
        said = count_letters(conversation, tools)
        self._require_letters(said, "messages", code)
        roles = sum(len(message["role"]) for message in conversation)
        try:
            return await self._run(
                said + roles,
                lambda: self._model.encode_chat(
                    conversation,
                    add_generation_prompt=template.add_generation_prompt,
                    continue_final_message=template.continue_final_message,
                    tools=tools,
                ),
            )
        except ValueError as error:
            raise ApiError(400, str(error), "invalid_value", "messages") from error

    async def prompt(self, prompt: str | list[int], special: bool) -> list[int]:
        """Tokens of a prompt that fits the context."""
        if isinstance(prompt, str):
            tokens = await self.count(prompt, special, "context_length_exceeded")
            if not tokens:
                raise ApiError(400, "the prompt is empty", "invalid_value", "prompt")
            self._require_room(len(tokens), "prompt")
            return tokens
        self._require_room(len(prompt), "prompt")
        try:
            self._model.check_tokens(prompt)
        except ValueError as error:
            raise ApiError(400, str(error), "invalid_value", "prompt") from error
        return prompt

    async def count(self, text: str, special: bool, code: str = "too_large") -> list[int]:
        """Tokens of a text, which may be somewhat longer than the context."""
        self._require_letters(len(text), "prompt", code)
        return await self._run(
            len(text), lambda: self._model.encode(text, add_special_tokens=special)
        )

    async def _run(self, letters: int, encode: Callable[[], list[int]]) -> list[int]:
        if letters <= INLINE_LETTERS and not self._busy:
            return encode()
        self._busy += 1
        work = self._thread.submit(encode)
        # Counted down when the work has ended, not its request, whose client may have gone.
        loop = asyncio.get_running_loop()
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._ended))
        return await asyncio.wrap_future(work)

    def _ended(self) -> None:
        self._busy -= 1

    def _require_letters(self, letters: int, field: str, code: str) -> None:
        """Refuse, before any work, a text that cannot fit however well it is tokenised."""
        length, longest = self._model.max_model_len, self._model.longest_token
        if letters > length * longest:
            raise ApiError(
                400,
                f"{letters} letters are more than this model's maximum context length of {length} "
                f"tokens can hold: no token has more than {longest}",
                code,
                field,
            )

    def _require_room(self, tokens: int, field: str) -> None:
        length = self._model.max_model_len
        if tokens > length:
            raise ApiError(
                400,
                f"this model's maximum context length is {length} tokens, and the prompt itself "
                f"has {tokens}",
                "context_length_exceeded",
                field,
            )
