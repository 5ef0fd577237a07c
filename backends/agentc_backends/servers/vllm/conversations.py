"""Conversations that vLLM would render into other tokens than trainers and the embedded server do.

vLLM's template leaves functions out without a word where the checkpoint's chat format has no place
for them: they are written into plain messages. vLLM makes a control token of every text that spells
one, so that an observation could end a turn: it receives the tokens of such a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.chat.tool_calls import TemplateTools, plain_messages
from agentc_backends.openai_api.conversation import read_messages, read_tool_use
from agentc_backends.openai_api.values import invalid_value


def format_tools(model: Path) -> TemplateTools:
    """What the chat format of a checkpoint does with functions. Raises FormatError where it has
    none that can be read."""
    return load_encoder(model).format_tools()


def has_function_texts(body: Mapping[str, Any]) -> bool:
    """Whether a conversation has functions, calls or results, which a template has to write."""
    said = _messages(body)
    calls = any(message.get("tool_calls") for message in said)
    results = any(message.get("role") == "tool" for message in said)
    return bool(body.get("tools") or calls or results)


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = body.get("messages")
    return [m for m in listed if isinstance(m, dict)] if isinstance(listed, list) else []


class FunctionTexts:
    """Of one server. `model` is the folder of what it serves, which is read at the first request
    that has functions."""

    def __init__(
        self, model: Path, tools_of: Callable[[Path], TemplateTools] = format_tools
    ) -> None:
        self._model = model
        self._tools_of = tools_of

    def rewrite(self, body: Mapping[str, Any], *, replies: bool) -> dict[str, Any] | None:
        """The body of a chat, which `replies`, or of `/tokenize` with functions, calls and results
        as texts; None where vLLM shows them by itself, or there are none. Functions whose calls it
        is to read out of the reply stay in the body, too. Raises ApiError."""
        if not has_function_texts(body):
            return None
        calls = any(message.get("tool_calls") for message in _messages(body))
        unread = bool(body.get("tools")) and body.get("tool_choice") == "none"
        match self._template_tools:
            case TemplateTools.RENDERED:
                return None
            case TemplateTools.FOREIGN if unread and not calls:
                raise invalid_value(
                    "tool_choice",
                    "is none, so that calls stay in the reply as they were written, and the "
                    "model's chat template writes them in a notation that nobody reads from there",
                )
            case TemplateTools.FOREIGN:
                return None
        # Its words alone: vLLM holds replies to forms by itself.
        tools = read_tool_use({"tools": body.get("tools") or [], "tool_choice": "none"}).tools
        try:
            plain = plain_messages(read_messages(body), tools)
        except FormatError as error:
            raise invalid_value("messages", str(error)) from error
        changed = {**body, "messages": plain}
        if unread or not replies:
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                changed.pop(name, None)
        return changed

    @cached_property
    def _template_tools(self) -> TemplateTools:
        try:
            return self._tools_of(self._model)
        except FormatError as error:
            raise invalid_value("tools", f"{error}") from error


_OTHERS = (
    *("chat_template", "chat_template_kwargs", "documents", "echo"),
    *("truncate_prompt_tokens", "reasoning_effort"),
)
"""Fields that change how vLLM renders a prompt, which tokens made here would ignore."""


class Chat(Protocol):
    """What is asked of a checkpoint's chat format (`ChatText`)."""

    @property
    def by_line(self) -> bool: ...

    @property
    def control(self) -> Sequence[str]: ...

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> list[int]: ...


def chat_text(model: Path) -> Chat:
    """The chat format of a checkpoint, with its tokenizer."""
    from transformers import AutoTokenizer

    from agentc_backends.openai_api.chat_text import ChatText

    tokenizer = AutoTokenizer.from_pretrained(str(model), trust_remote_code=False)
    return ChatText(str(model), tokenizer)


class PromptTokens:
    """Of one server. `model` is the folder of what it serves, which is read at the first request
    that has messages."""

    def __init__(self, model: Path, chat_of: Callable[[Path], Chat] = chat_text) -> None:
        self._model = model
        self._chat_of = chat_of

    def with_tokens(self, body: Mapping[str, Any], *, rendered: bool) -> dict[str, Any] | None:
        """The body of a chat or of `/tokenize` with the tokens of its prompt; None where vLLM makes
        the same ones. `rendered`: vLLM's template is to write the functions in it. Raises
        ApiError."""
        listed = body.get("messages")
        if not isinstance(listed, list):
            return None
        spelled = self._spelled_control([listed, body.get("tools")])
        if spelled is None and not self._chat.by_line:
            return None
        why = f"spell the control token {spelled}" if spelled else "are written line by line"
        given = [name for name in _OTHERS if body.get(name)]
        if given or rendered:
            beside = given[0] if given else "functions that the chat template writes"
            raise invalid_value("messages", f"{why}, which cannot be kept apart from {beside}")
        try:
            ids = self._chat.encode(
                read_messages(body),
                add_generation_prompt=body.get("add_generation_prompt", True) is True,
                continue_final_message=body.get("continue_final_message") is True,
            )
        except FormatError as error:
            raise invalid_value("messages", f"{why}: {error}") from error
        # vLLM's own way of taking a prompt that another server has made of the messages.
        others = body.get("kv_transfer_params") or {}
        return {**body, "kv_transfer_params": {**others, "prompt_token_ids": ids}}

    def _spelled_control(self, value: object) -> str | None:
        """The first control token that any text in a JSON value spells."""
        control = self._chat.control
        return next((token for text in _texts(value) for token in control if token in text), None)

    @cached_property
    def _chat(self) -> Chat:
        return self._chat_of(self._model)


def _texts(value: object) -> Iterator[str]:
    """What a request says: no names of its fields, and no pictures."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        if value.get("type") in ("image_url", "input_audio", "video_url"):
            return
        for name, each in value.items():
            if name == "parameters":
                yield json.dumps(each, ensure_ascii=False)
            else:
                yield from _texts(each)
