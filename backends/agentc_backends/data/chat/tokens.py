"""Conversations -> token ids and the index of the assistant turn that each token belongs to.

A text is tokenised as a whole; character offsets carry the segments over. A trained turn always
follows exactly the tokens of a server's prompt: where one row cannot do this for all turns,
each turn gets a row. A control token that a message only spells stays plain text, so that no
observation can end a turn."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import CHAT_FILE
from agentc_backends.data.chat.chat_template import ChatTemplate, RenderedTurn, text_of
from agentc_backends.data.chat.formats import (
    ChatFormat,
    FormatError,
    Message,
    TextSegment,
    format_named,
)
from agentc_backends.data.chat.piece_tokens import PieceTokens
from agentc_backends.data.chat.template_rendering import render_bounded, with_fixed_date
from agentc_backends.data.chat.tool_calls import (
    TemplateTools,
    detect_tools,
    has_functions,
    in_plain_text,
    request_of,
    require_readable,
)


@dataclass(frozen=True, slots=True)
class Encoded:
    """`ids[i]` is a token; `turns[i]` the index of the assistant message in whose trained region
    it lies, or -1. Both have the length of the conversation in tokens. `open_thoughts` is the
    number of replies that do not close the thought that their prompt opens."""

    ids: list[int]
    turns: list[int]
    open_thoughts: int = 0

    def first_of(self, turn: int) -> int:
        """Position of the first token of a turn's region (the length when it has none)."""
        return next((i for i, t in enumerate(self.turns) if t == turn), len(self.ids))


class Encoder:
    """Tokenises conversations for one checkpoint: its fast tokenizer and its chat format."""

    def __init__(self, tokenizer: Any, chat_format: str, ends: Iterable[int] | None = None) -> None:
        """`ends` are the tokens at which a server ends a reply; by default the tokenizer's own."""
        if not getattr(tokenizer, "is_fast", False):
            raise FormatError("this tokenizer has no fast version, which gives character offsets")
        self.tokenizer = tokenizer
        self.chat: ChatFormat | None = (
            None if chat_format == "tokenizer" else format_named(chat_format)
        )
        added = tokenizer.added_tokens_decoder
        self._control = {i: str(token) for i, token in added.items() if token.special}
        self._pieces = PieceTokens(tokenizer)
        self._tools_found: TemplateTools | None = None
        self._end_ids = None if ends is None else tuple(ends)
        if self.chat is not None:
            require_tokens(tokenizer, self.chat)

    @property
    def pad(self) -> int:
        """The id to fill rows up with. Llama's tokenizers name none; what fills up is masked, so
        that any token will do."""
        ids = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id)
        return next((i for i in ids if i is not None), 0)

    def segments(self, messages: Sequence[Message]) -> list[TextSegment]:
        """The conversation as one row, in segments with the regions of all its replies. Raises
        FormatError where the template writes a reply in another way once later messages exist."""
        messages = self._expressed(messages)
        if self.chat is not None:
            return self.chat.segments(messages)
        replies = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        template = self._template()
        found = template.row(messages, {i: template.turn(messages, i) for i in replies})
        if found is None:
            raise FormatError(
                "the tokenizer's chat template rewrites history: it writes a reply, or what is "
                "before it, in another way once later messages exist, so that one row of tokens "
                "cannot hold all turns as they are met at inference; choose a built-in chat_format"
            )
        return found

    def encode(self, messages: Sequence[Message]) -> Encoded:
        """Token ids and turns of a conversation in one row. Raises FormatError."""
        return self.encode_segments(self.segments(messages))

    def encode_turns(self, messages: Sequence[Message], turns: Iterable[int]) -> list[Encoded]:
        """Rows in which each of these assistant turns follows exactly the tokens that a server is
        asked with: one row for all of them where that is possible, else one for each, with the
        turn as the template writes it while it is the last. Raises FormatError."""
        messages = self._expressed(messages)
        wanted = sorted(turns)
        segments: list[TextSegment] | None
        if self.chat is None:
            template = self._template()
            rendered = {turn: template.turn(messages, turn) for turn in wanted}
            segments = template.row(messages, rendered)
        else:
            segments = self.chat.segments(messages)
            if self.chat.by_line:
                return [self.encode_segments(segments)]
            rendered = {turn: self._built_in_turn(self.chat, messages, turn) for turn in wanted}
        prompts = {turn: self._prompt_ids(rendered[turn].prompt) for turn in wanted}
        if segments is not None:
            row = self.encode_segments(segments)
            if all(self._follows(row, turn, prompt) for turn, prompt in prompts.items()):
                thoughts = sum(each.open_thought for each in rendered.values())
                return [Encoded(row.ids, row.turns, thoughts)]
        return [self._behind(prompts[turn], turn, rendered[turn]) for turn in wanted]

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation that waits for a reply: what a server should feed."""
        return self._prompt_ids(self._prompt(self._expressed(messages)))

    def end_token(self, messages: Sequence[Message]) -> int:
        """The token that ends a reply, the last message, under the tokenizer's own template.
        Raises FormatError where there is none."""
        ending = self._template().ending_of(messages)
        ids: list[int] = [i for i, token in self._control.items() if ending.endswith(token)]
        return max(ids, key=lambda token: len(self._control[token]))

    def _template(self) -> ChatTemplate:
        ids = self._end_ids or [i for i in [self.tokenizer.eos_token_id] if i is not None]
        ends = frozenset(map(str, self.tokenizer.convert_ids_to_tokens(list(ids))))
        return ChatTemplate(self._render_shipped, tuple(self._control.values()), ends)

    def _prompt(self, messages: Sequence[Message]) -> list[TextSegment]:
        if self.chat is None:
            return self._template().prompt(messages).segments()
        return [*self.chat.segments(messages), TextSegment(self.chat.generation_prompt)]

    def _built_in_turn(
        self, chat: ChatFormat, messages: Sequence[Message], index: int
    ) -> RenderedTurn:
        said = chat.segments(messages[: index + 1])
        prompt = [replace(segment, turn=None) for segment in self._prompt(messages[:index])]
        return RenderedTurn(tuple(prompt), tuple(s for s in said if s.turn == index))

    def _prompt_ids(self, segments: Sequence[TextSegment]) -> list[int]:
        spelled = any(
            token in segment.text
            for segment in segments
            if segment.content
            for token in self._control.values()
        )
        if spelled or (self.chat is not None and self.chat.by_line):
            return self.encode_segments(segments).ids
        return self._pieces.ids(text_of(segments))

    def _follows(self, row: Encoded, turn: int, prompt: list[int]) -> bool:
        """Whether a turn's first trained token follows the prompt, token by token."""
        first = row.first_of(turn)
        if first == len(row.ids):  # a cut reply without a word has no token of its own
            return row.ids[: len(prompt)] == prompt
        return row.ids[:first] == prompt

    def _behind(self, prompt: list[int], turn: int, rendered: RenderedTurn) -> Encoded:
        """A turn behind its prompt: as the whole text is tokenised where the prompt stays the
        same, else with the reply tokenised on its own."""
        thoughts = int(rendered.open_thought)
        whole = self.encode_segments([*rendered.prompt, *rendered.reply])
        if self._follows(whole, turn, prompt):
            return Encoded(whole.ids, whole.turns, thoughts)
        alone = self._continued(rendered.reply)
        return Encoded([*prompt, *alone.ids], [-1] * len(prompt) + alone.turns, thoughts)

    def encode_segments(self, segments: Sequence[TextSegment]) -> Encoded:
        """Token ids and turns of segments of a conversation, with a cut wherever a token would
        span the end of a prompt and the beginning of its reply: at inference none can. Raises
        FormatError."""
        segments = [segment for segment in segments if segment.text]
        if self.chat is not None and self.chat.by_line:
            # A token that held the end of one text and the beginning of the next would be another
            # than those of a prompt and its reply.
            return _joined([self._encode([segment]) for segment in segments])
        borders = [
            place
            for place, segment in enumerate(segments)
            if place and segment.turn is not None and segments[place - 1].turn != segment.turn
        ]
        cut = self._cut(text_of(segments))
        spanned = _spanned(cut, segments, borders)
        if not spanned:
            return self._labelled(cut, segments)
        parts = [self._encode(segments[: spanned[0]])]
        for start, end in pairwise([*spanned, len(segments)]):
            parts.append(self._continued(segments[start:end]))
        return _joined(parts)

    def _continued(self, segments: Sequence[TextSegment]) -> Encoded:
        """Tokens of a text that continues another one. They are made behind a control token:
        some tokenizers write what a text begins with in a way of its own."""
        anchor = next(iter(self._control.values()), "")
        whole = self._encode([TextSegment(anchor), *segments])
        size = 1 if anchor else 0
        return Encoded(whole.ids[size:], whole.turns[size:])

    def _encode(self, segments: Sequence[TextSegment]) -> Encoded:
        return self._labelled(self._cut(text_of(segments)), segments)

    def _cut(self, text: str) -> list[tuple[int, int, int]]:
        """(token, begin, end) of a text."""
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids, offsets = found["input_ids"], found["offset_mapping"]
        return [(token, *offset) for token, offset in zip(ids, offsets, strict=True)]

    def _labelled(
        self, cut: Sequence[tuple[int, int, int]], segments: Sequence[TextSegment]
    ) -> Encoded:
        """Tokens with the turns of their segments; control tokens in contents spelled."""
        starts = [0, *accumulate(len(segment.text) for segment in segments[:-1])]
        ids: list[int] = []
        turns: list[int] = []
        for token, begin, end in cut:
            segment = segments[bisect_right(starts, begin) - 1]
            turn = -1 if segment.turn is None else segment.turn
            if segment.content and token in self._control:
                start = starts[bisect_right(starts, begin) - 1]
                spelled = self.spell(segment.text[begin - start : end - start])
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
            self._tools_found = detect_tools(
                lambda said, tools: self._apply(said, False, tools=list(tools))
            )
        return self._tools_found

    def _expressed(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation, whose functions and results are plain texts where the chat format has
        no place for them. Raises FormatError for a template that writes them in its own way."""
        if not has_functions(messages):
            return messages
        if require_readable(self.format_tools()) is TemplateTools.RENDERED:
            return messages
        return in_plain_text(messages)

    def _render_shipped(self, messages: Sequence[Message], generate: bool) -> str:
        if not has_functions(messages):
            return self._apply(messages, generate)
        said, tools = request_of(messages)
        return self._apply(said, generate, tools=list(tools) or None)

    def _apply(self, messages: Sequence[Message], generate: bool, **how: Any) -> str:
        if not self.tokenizer.chat_template:
            raise FormatError(
                "this tokenizer ships no chat template; set chat_format on the model stage"
            )
        from jinja2.exceptions import TemplateError, TemplateSyntaxError, UndefinedError

        template = with_fixed_date(self.tokenizer.get_chat_template())
        try:
            return render_bounded(
                lambda: self.tokenizer.apply_chat_template(
                    list(messages),
                    tokenize=False,
                    add_generation_prompt=generate,
                    chat_template=template,
                    **how,
                )
            )
        except TemplateSyntaxError as error:
            raise FormatError(
                f"the tokenizer's chat template is no valid Jinja (line {error.lineno}: {error}); "
                "correct chat_template.jinja, or choose a built-in chat_format"
            ) from error
        except UndefinedError as error:
            raise FormatError(
                f"the tokenizer's chat template uses a value that nothing passes to it: {error}; "
                "give it a default in chat_template.jinja, or choose a built-in chat_format"
            ) from error
        except TemplateError as error:
            raise FormatError(
                f"the tokenizer's chat template refuses the conversation: {error}; choose a "
                "built-in chat_format, or leave out what it refuses"
            ) from error
        except FormatError:
            raise
        except Exception as error:  # a program of its own: it may raise whatever Python has
            raise FormatError(
                f"the tokenizer's chat template fails ({type(error).__name__}: {error}); correct "
                "chat_template.jinja, or choose a built-in chat_format"
            ) from error


def _spanned(
    cut: Sequence[tuple[int, int, int]], segments: Sequence[TextSegment], borders: Sequence[int]
) -> list[int]:
    """The borders, places of segments, that a token of the whole text spans."""
    lengths = [0, *accumulate(len(segment.text) for segment in segments)]
    begins = [begin for _, begin, _ in cut]
    found = []
    for place in borders:
        at = bisect_left(begins, lengths[place]) - 1
        if at >= 0 and cut[at][2] > lengths[place]:
            found.append(place)
    return found


def _joined(parts: Sequence[Encoded]) -> Encoded:
    return Encoded(
        [token for part in parts for token in part.ids],
        [turn for part in parts for turn in part.turns],
    )


def load_encoder(model: Path) -> Encoder:
    """The encoder of a checkpoint directory, by its agentc_chat.json (absent: `tokenizer`)."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(model), trust_remote_code=False)
    return Encoder(tokenizer, chat_format_of(model), ends_of_model(model, tokenizer))


def ends_of_model(model: Path, tokenizer: Any) -> list[int]:
    """The tokens at which a server ends a reply: those of generation_config.json, and the
    tokenizer's own."""
    path = model / "generation_config.json"
    values = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    given = values.get("eos_token_id")
    ends = [] if given is None else given if isinstance(given, list) else [given]
    own = tokenizer.eos_token_id
    return ends if own is None or own in ends else [*ends, own]


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
