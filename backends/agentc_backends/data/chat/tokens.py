"""Conversations -> token ids and the index of the assistant turn that each token belongs to.

The whole text is tokenised once; character offsets carry the segments over. A control token that
a message's text merely spells is put back as plain text, so that no observation can end a turn.
Neighbours: `formats.py`, `shipped.py` (segments), `rows.py` (data sets).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc_backends.data.chat.bounded import bounded
from agentc_backends.data.chat.dates import with_fixed_date
from agentc_backends.data.chat.formats import (
    ChatFormat,
    FormatError,
    Message,
    TextSegment,
    format_named,
)
from agentc_backends.data.chat.functions import has_functions, in_plain_text, requested
from agentc_backends.data.chat.shipped import Renderer, shipped_segments
from agentc_backends.data.chat.tool_templates import TemplateTools, readable, tools_of

CHAT_FILE = "agentc_chat.json"
"""Beside a checkpoint's weights: `{"chat_format": name}`."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """`ids[i]` is a token; `turns[i]` the index of the assistant message in whose trained region
    it lies, or -1. Both have the length of the conversation in tokens."""

    ids: list[int]
    turns: list[int]

    def first_of(self, turn: int) -> int:
        """Position of the first token of a turn's region (the length when it has none)."""
        return next((i for i, t in enumerate(self.turns) if t == turn), len(self.ids))


class Encoder:
    """Tokenises conversations for one checkpoint: its fast tokenizer and its chat format."""

    def __init__(self, tokenizer: Any, chat_format: str) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise FormatError("this tokenizer has no fast version, which gives character offsets")
        self.tokenizer = tokenizer
        self.chat: ChatFormat | None = (
            None if chat_format == "tokenizer" else format_named(chat_format)
        )
        added = tokenizer.added_tokens_decoder
        self._control = {i: str(token) for i, token in added.items() if token.special}
        self._tools_found: TemplateTools | None = None
        if self.chat is not None:
            require_tokens(tokenizer, self.chat)

    @property
    def pad(self) -> int:
        """The id to fill rows up with. Llama's tokenizers name none; what fills up is masked, so
        that any token will do."""
        ids = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id)
        return next((i for i in ids if i is not None), 0)

    def segments(self, messages: Sequence[Message]) -> list[TextSegment]:
        """The rendered conversation, in segments."""
        messages = self._expressed(messages)
        if self.chat is not None:
            return self.chat.segments(messages)
        _require_system(self._render_shipped, messages)
        return shipped_segments(self._render_shipped, messages, tuple(self._control.values()))

    def encode(self, messages: Sequence[Message]) -> Encoded:
        """Token ids and turns of a conversation. Raises FormatError."""
        return self.encode_segments(self.segments(messages))

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation that waits for a reply: what a server should feed."""
        if self.chat is not None:
            ending = self.chat.generation_prompt
        else:
            said = self._expressed(messages)
            prompt = self._render_shipped(said, True)
            ending = prompt.removeprefix(self._render_shipped(said, False))
        return self.encode_segments([*self.segments(messages), TextSegment(ending)]).ids

    def encode_segments(self, segments: Sequence[TextSegment]) -> Encoded:
        """Token ids and turns of segments of a conversation. Raises FormatError."""
        if self.chat is None or not self.chat.by_line:
            return self._encode(segments)
        # A token that held the end of one text and the beginning of the next would be another than
        # those of a prompt and its reply.
        parts = [self._encode([segment]) for segment in segments if segment.text]
        return Encoded(
            [token for part in parts for token in part.ids],
            [turn for part in parts for turn in part.turns],
        )

    def _encode(self, segments: Sequence[TextSegment]) -> Encoded:
        text = "".join(segment.text for segment in segments)
        starts: list[int] = []
        position = 0
        for segment in segments:
            starts.append(position)
            position += len(segment.text)
        encoding = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids: list[int] = []
        turns: list[int] = []
        for token, (begin, end) in zip(
            encoding["input_ids"], encoding["offset_mapping"], strict=True
        ):
            segment = segments[bisect_right(starts, begin) - 1]
            turn = -1 if segment.turn is None else segment.turn
            if segment.content and token in self._control:
                spelled = self.spell(text[begin:end])
                ids += spelled
                turns += [turn] * len(spelled)
            else:
                ids.append(token)
                turns.append(turn)
        return Encoded(ids, turns)

    def spell(self, text: str) -> list[int]:
        """Tokens of a text that holds no control token, whatever it looks like."""
        encoding = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        ids: list[int] = encoding["input_ids"]
        if any(token in self._control for token in ids):
            raise FormatError(f"the tokenizer cannot write {text!r} as plain text")
        return ids

    def format_tools(self) -> TemplateTools:
        """What the chat format does with functions: a built-in one has no place for them. Raises
        FormatError where there is no template."""
        if self.chat is not None:
            return TemplateTools.UNKNOWN
        if self._tools_found is None:
            self._tools_found = tools_of(
                lambda said, tools: self._apply(said, False, tools=list(tools))
            )
        return self._tools_found

    def _expressed(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation, whose functions and results are plain texts where the chat format has
        no place for them. Raises FormatError for a template that writes them in its own way."""
        if not has_functions(messages):
            return messages
        if readable(self.format_tools()) is TemplateTools.RENDERED:
            return messages
        return in_plain_text(messages)

    def _render_shipped(self, messages: Sequence[Message], generate: bool) -> str:
        if not has_functions(messages):
            return self._apply(messages, generate)
        said, tools = requested(messages)
        return self._apply(said, generate, tools=list(tools) or None)

    def _apply(self, messages: Sequence[Message], generate: bool, **how: Any) -> str:
        if not self.tokenizer.chat_template:
            raise FormatError(
                "this tokenizer ships no chat template; set chat_format on the model stage"
            )
        from jinja2.exceptions import TemplateError

        template = with_fixed_date(self.tokenizer.get_chat_template())
        try:
            return bounded(
                lambda: self.tokenizer.apply_chat_template(
                    list(messages),
                    tokenize=False,
                    add_generation_prompt=generate,
                    chat_template=template,
                    **how,
                )
            )
        except TemplateError as error:
            raise FormatError(
                f"the tokenizer's chat template refuses the conversation: {error}; choose a "
                "built-in chat_format, or leave out what it refuses"
            ) from error


def _require_system(render: Renderer, messages: Sequence[Message]) -> None:
    """A template that leaves the system message out would train and serve another prompt than the
    spec says. Raises FormatError."""
    if not messages or messages[0]["role"] != "system":
        return
    system = messages[0]["content"].strip()
    if system not in render(messages[:2], False):
        raise FormatError(
            f"the tokenizer's chat template leaves the system message {system[:40]!r} out; choose "
            "a built-in chat_format, or take `system` out of the prompt"
        )


def load_encoder(model: Path) -> Encoder:
    """The encoder of a checkpoint directory, by its agentc_chat.json (absent: `tokenizer`)."""
    from transformers import AutoTokenizer

    return Encoder(
        AutoTokenizer.from_pretrained(str(model), trust_remote_code=False), chat_format_of(model)
    )


def chat_format_of(model: Path) -> str:
    """The chat format that a checkpoint was made for."""
    path = model / CHAT_FILE
    if not path.exists():
        return "tokenizer"
    return str(json.loads(path.read_text(encoding="utf-8"))["chat_format"])


def require_tokens(tokenizer: Any, chat: ChatFormat) -> None:
    """Raise FormatError when a control token of the format is not a single special token, or a line
    end that is to end replies no token."""
    known = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    missing = [token for token in chat.tokens if token not in known]
    # <|endoftext|> only pads and separates documents; a chatml model may name it otherwise.
    missing = [token for token in missing if token != "<|endoftext|>"]
    if missing:
        raise FormatError(
            f"the chat format {chat.name} needs the special tokens {', '.join(missing)}, which "
            "the tokenizer does not have; use chat_format: tokenizer or a matching format"
        )
    if chat.by_line and len(tokenizer("\n", add_special_tokens=False)["input_ids"]) != 1:
        raise FormatError(
            f"under the chat format {chat.name} a line end ends a reply, and this tokenizer writes "
            "one in several tokens; use another chat_format"
        )
