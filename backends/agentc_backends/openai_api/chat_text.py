"""Messages -> prompt tokens, the same tokens that trainers see (`agentc_backends.data.chat`).

Rendering is one pass over the text unless a message spells a control token, or texts become tokens
one by one; then the encoder of the trainers is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from agentc_backends.data.chat.formats import ChatFormat, FormatError, format_named, render
from agentc_backends.data.chat.piece_tokens import PieceTokens
from agentc_backends.data.chat.template_rendering import render_bounded, with_fixed_date
from agentc_backends.data.chat.tokens import Encoder, chat_format_of
from agentc_backends.data.chat.tool_calls import (
    TemplateTools,
    plain_messages,
    request_of,
    structured_messages,
    template_tools,
)

Messages = Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]]


class ChatText:
    """The chat format of one checkpoint."""

    def __init__(self, root: str, tokenizer: Any) -> None:
        name = chat_format_of(Path(root))
        self._tokenizer = tokenizer
        self._format: ChatFormat | None = None if name == "tokenizer" else format_named(name)
        self._by_line = self._format is not None and self._format.by_line
        fast = getattr(tokenizer, "is_fast", False)
        self._encoder = Encoder(tokenizer, name) if fast or self._by_line else None
        self._pieces = PieceTokens(tokenizer)
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self._control = tuple(str(token) for token in added.values() if token.special)
        self._tools_found: TemplateTools | None = None

    @property
    def by_line(self) -> bool:
        """Whether texts become tokens one by one."""
        return self._by_line

    @property
    def control(self) -> Sequence[str]:
        """The control tokens that a text may spell."""
        return self._control

    def encode(
        self,
        messages: Messages,
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
        tools: Tools = (),
    ) -> list[int]:
        """Prompt tokens. Raises ValueError when the format cannot express the messages."""
        if tools or any(m["role"] == "tool" or m.get("tool_calls") for m in messages):
            if self._template_tools() is TemplateTools.RENDERED:
                if continue_final_message:
                    raise FormatError("a reply beside functions cannot be continued")
                return self._beside_tools(messages, tools, add_generation_prompt)
            messages = plain_messages(messages, tools)
        if continue_final_message:
            return self._open_ended(messages)
        if self._encoder is not None and (self._by_line or self._spells_control(messages)):
            if add_generation_prompt:
                return self._encoder.encode_prompt(messages)
            return self._encoder.encode(messages).ids
        return self._pieces.ids(self._text(messages, add_generation_prompt))

    def encode_row(self, messages: Messages) -> list[int]:
        """Prompt tokens of a row of data that waits for a reply; its first message has the
        functions, where there are any."""
        said, tools = request_of(messages)
        return self.encode(
            said, add_generation_prompt=True, continue_final_message=False, tools=tools
        )

    def _template_tools(self) -> TemplateTools:
        """What the template does with functions; a format of our own has no place for them."""
        if self._format is not None:
            return TemplateTools.UNKNOWN
        if self._tools_found is None:
            self._tools_found = template_tools(
                lambda messages, tools: self._shipped(messages, tools=tools)
            )
        return self._tools_found

    def _beside_tools(self, messages: Messages, tools: Tools, generate: bool) -> list[int]:
        """Tokens by the template's own rendering of functions, calls and results."""
        if self._spells_control(messages) or any(t in json.dumps(tools) for t in self._control):
            raise FormatError(
                "a message or a function spells a control token, which cannot be kept apart in "
                "this template beside functions"
            )
        messages = structured_messages(messages)
        how: dict[str, Any] = {"tools": list(tools)} if tools else {}
        text = self._shipped(messages, add_generation_prompt=generate, **how)
        return self._pieces.ids(text)

    def _text(self, messages: Messages, generate: bool) -> str:
        if self._format is not None:
            return render(self._format, messages, generate=generate)
        return self._shipped(messages, add_generation_prompt=generate)

    def _open_ended(self, messages: Messages) -> list[int]:
        """Tokens up to the end of the last message, which is to be continued."""
        if self._spells_control(messages):
            raise FormatError("a message spells a control token; it cannot be continued")
        if self._format is None:
            return self._pieces.ids(self._shipped(messages, continue_final_message=True))
        segments = self._format.segments(messages)
        last = max(i for i, segment in enumerate(segments) if segment.content)
        if self._encoder is not None and self._by_line:
            return self._encoder.encode_segments(segments[: last + 1]).ids
        return self._pieces.ids("".join(segment.text for segment in segments[: last + 1]))

    def _shipped(self, messages: Messages, **how: Any) -> str:
        if not self._tokenizer.chat_template:
            raise FormatError("the model has no chat template; use /v1/completions")
        template = with_fixed_date(self._tokenizer.get_chat_template())
        try:
            return render_bounded(
                lambda: self._tokenizer.apply_chat_template(
                    list(messages), tokenize=False, chat_template=template, **how
                )
            )
        except (TemplateError, TypeError) as error:  # JSON of what a message does not have
            raise FormatError(f"the chat template refuses these messages: {error}") from error
        except FormatError:
            raise
        except Exception as error:
            raise FormatError(
                f"the chat template fails ({type(error).__name__}: {error})"
            ) from error

    def _spells_control(self, messages: Messages) -> bool:
        return any(token in text for text in map(_letters, messages) for token in self._control)


def _letters(message: Mapping[str, Any]) -> str:
    """All that a message says."""
    called = [call["function"] for call in message.get("tool_calls", ())]
    return "".join([message["content"], *(f["name"] + f["arguments"] for f in called)])
