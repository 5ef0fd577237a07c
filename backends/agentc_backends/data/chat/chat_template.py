"""Conversations under the chat template that a tokenizer ships (chat format `tokenizer`).

The template is a black box that is asked by rendering. A turn's prompt is what it renders of the
messages before, as a server does; where contents stand is found by rendering placeholders in their
place, never by searching for a text that may stand elsewhere too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from agentc_backends.data.chat.formats import FormatError, Message, TextSegment

Renderer: TypeAlias = Callable[[Sequence[Message], bool], str]
"""(messages, add_generation_prompt) -> text, as the tokenizer's own template writes it."""

# Templates cut a reply at these, so that a placeholder must not hide them.
_TAGS = re.compile(r"(</?(?:think|thinking|reasoning|tool_call|tool_response|answer)>)")
_OPEN_THOUGHT = re.compile(r"<(think|thinking|reasoning)>\s*$")


@dataclass(frozen=True, slots=True)
class ContentPlace:
    """Where a template wrote the content of a message, or a part of it."""

    start: int
    end: int
    message: int


@dataclass(frozen=True, slots=True)
class Rendering:
    """A text that a template wrote. `places` are those of the contents that were looked for, in
    order; `missing` are the messages whose content cannot be located."""

    text: str
    places: tuple[ContentPlace, ...] = ()
    missing: frozenset[int] = frozenset()

    def end_of(self, message: int) -> int | None:
        """Where the content of a message ends, or None where the template leaves it out."""
        return max((p.end for p in self.places if p.message == message), default=None)

    def segments(self) -> list[TextSegment]:
        """The text, with the contents that were located apart from the template's own text."""
        return cut_segments(self.text, self.places, {})


@dataclass(frozen=True, slots=True)
class RenderedTurn:
    """An assistant turn as the template writes it while it is the last one: `prompt` is what a
    server is asked with, `reply` the trained region behind it. `open_thought` is true where the
    prompt opens a thought that the reply does not close."""

    prompt: tuple[TextSegment, ...]
    reply: tuple[TextSegment, ...]
    open_thought: bool = False


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """`control` are the tokenizer's control tokens, `ends` those at which a server ends a reply."""

    render: Renderer
    control: tuple[str, ...]
    ends: frozenset[str]

    def prompt(self, messages: Sequence[Message]) -> Rendering:
        """What a server is asked with. Raises FormatError."""
        return _check_complete(messages, self._located(messages, True, self._spelling(messages)))

    def whole(self, messages: Sequence[Message]) -> Rendering:
        """The whole conversation. Raises FormatError."""
        return self._located(messages, False, self._spelling(messages))

    def turn(self, messages: Sequence[Message], index: int) -> RenderedTurn:
        """The assistant message `index`, behind the messages before it. Raises FormatError where
        the template ends no reply, or its place cannot be found."""
        message = messages[index]
        prompt = self.prompt(messages[:index])
        closed = self._closed(messages[: index + 1], prompt.text)
        behind = closed.end_of(index)
        extends = closed.text.startswith(prompt.text)
        if behind is None and message["content"].strip() and index not in closed.missing:
            raise FormatError(_left_out(messages, index))
        if behind is None and not extends:
            raise FormatError(
                f"the tokenizer's chat template rewrites the reply in message {index}, so that it "
                "cannot be located; choose a built-in chat_format"
            )
        if behind is None or (extends and behind < len(prompt.text)):
            behind = len(prompt.text)
        ending = "" if message.get("cut") else self._ending(messages, index, closed.text[behind:])
        segments = prompt.segments()
        if extends:
            text = closed.text[:behind] + ending
            regions = {index: (len(prompt.text), len(text))}
            pieces = cut_segments(text, closed.places, regions)
            reply = [piece for piece in pieces if piece.turn is not None]
        else:
            content = message["content"] if message.get("cut") else message["content"].rstrip()
            reply = _behind_another_prompt(prompt.text, closed, index, content)
            reply.append(TextSegment(ending, turn=index))
        opened = _OPEN_THOUGHT.search(prompt.text)
        return RenderedTurn(
            tuple(segments),
            tuple(piece for piece in reply if piece.text),
            opened is not None and f"</{opened[1]}>" not in text_of(reply),
        )

    def _closed(self, messages: Sequence[Message], prompt: str) -> Rendering:
        """The conversation up to a reply, the last message, whose content is located."""
        last, content = len(messages) - 1, messages[-1]["content"]
        spelling = self._spelling(messages)
        if last in spelling or not content.strip():
            return self._located(messages, False, spelling)
        closed = self._located(messages, False, spelling)
        if closed.text.startswith(prompt + content):
            # Right behind the prompt: no placeholder is needed.
            place = ContentPlace(len(prompt), len(prompt) + len(content), last)
            return replace(closed, places=(*closed.places, place))
        return self._located(messages, False, spelling | {last})

    def row(
        self, messages: Sequence[Message], turns: Mapping[int, RenderedTurn]
    ) -> list[TextSegment] | None:
        """The whole conversation with the regions of these turns, or None where the template
        writes one of them, or what stands before it, in another way once later messages exist."""
        whole = self.whole(messages)
        text = whole.text
        regions: dict[int, tuple[int, int]] = {}
        places = list(whole.places)
        for index in sorted(turns):
            before = text_of(turns[index].prompt)
            through = before + text_of(turns[index].reply)
            places += _places(turns[index].reply, len(before), index)
            if index == len(messages) - 1 and through.startswith(text):
                text = through  # ended by a token that opens the next message
            if not text.startswith(through):
                return None
            regions[index] = (len(before), len(through))
        return cut_segments(text, places, regions)

    def ending_of(self, messages: Sequence[Message]) -> str:
        """What ends the last message, a reply: through its end-of-turn token. Raises
        FormatError."""
        last = len(messages) - 1
        closed = self._located(messages, False, frozenset({last}))
        behind = closed.end_of(last)
        if behind is None:
            raise FormatError(_left_out(messages, last))
        return self._ending(messages, last, closed.text[behind:])

    def _ending(self, messages: Sequence[Message], index: int, tail: str) -> str:
        """What ends a reply whose content `tail` follows: through the first end token, else the
        first control token, else through the one that opens the message behind (GLM)."""
        marks = sorted((tail.index(t) + len(t), t) for t in self.control if t in tail)
        at = next((end for end, mark in marks if mark in self.ends), None)
        if at is None and marks:
            at = marks[0][0]
        if at is not None:
            return tail[:at]
        opening = self._opening_behind(messages, index)
        if opening is None:
            raise FormatError(
                "the tokenizer's chat template ends no reply: neither an end-of-turn token nor "
                "another control token follows one, so that a policy would never learn to stop; "
                "write the end token behind replies in the template, or choose a built-in "
                "chat_format"
            )
        return opening

    def _opening_behind(self, messages: Sequence[Message], index: int) -> str | None:
        """White space and the control token that begin the message behind a reply, or None."""
        following = messages[index + 1 : index + 2] or [{"role": "user", "content": "Go on."}]
        said = [*messages[: index + 1], *following]
        try:
            longer = self._located(said, False, frozenset({index}))
        except FormatError:
            return None
        behind = longer.end_of(index)
        if behind is None:
            return None
        header = longer.text[behind:]
        blank = header[: len(header) - len(header.lstrip())]
        opens = [t for t in self.control if header.startswith(t, len(blank))]
        return blank + max(opens, key=len) if opens else None

    def _spelling(self, messages: Sequence[Message]) -> frozenset[int]:
        """The messages whose texts spell control tokens: these have to be told apart."""
        return frozenset(
            index
            for index, message in enumerate(messages)
            if any(token in message["content"] for token in self.control)
        )

    def _located(
        self, messages: Sequence[Message], generate: bool, wanted: frozenset[int]
    ) -> Rendering:
        """The rendering, with the contents of the `wanted` messages located. Raises FormatError
        for one that spells a control token and cannot be."""
        text = self.render(messages, generate)
        found = _find(self.render, messages, generate, wanted, text)
        if found is None:
            # Not all at once: one by one, so that a message that is rewritten spoils no other.
            places: list[ContentPlace] = []
            missing = set()
            for index in wanted:
                one = _find(self.render, messages, generate, frozenset({index}), text)
                if one is None:
                    missing.add(index)
                else:
                    places += one
            found = sorted(places, key=lambda place: place.start)
            if missing & self._spelling(messages):
                raise FormatError(
                    "a message holds a control token of the tokenizer and its template rewrites "
                    "the message, so the two cannot be told apart; choose a built-in chat_format"
                )
            return Rendering(text, tuple(found), frozenset(missing))
        return Rendering(text, tuple(found))


def _check_complete(messages: Sequence[Message], rendering: Rendering) -> Rendering:
    """The rendering itself. Raises FormatError where a template leaves out a part of the prompt:
    another prompt than the spec's would be trained and served."""
    for index, message in enumerate(messages):
        told = message["role"] in ("system", "user")
        if told and message["content"].strip() not in rendering.text:
            raise FormatError(_left_out(messages, index))
    return rendering


def _left_out(messages: Sequence[Message], index: int) -> str:
    message = messages[index]
    remedy = "choose a built-in chat_format"
    if message["role"] == "system":
        remedy += ", or take `system` out of the prompt"
    return (
        f"the tokenizer's chat template leaves the {message['role']} message "
        f"{message['content'].strip()[:40]!r} out; {remedy}"
    )


def _behind_another_prompt(
    prompt: str, closed: Rendering, index: int, content: str
) -> list[TextSegment]:
    """A reply behind a prompt that says more than the template keeps of it, such as the beginning
    of a thought: what is generated there is the reply as it is. One without a thought closes it as
    the template does, where it does; one that begins its thought does not begin it again."""
    segments = []
    opened = _OPEN_THOUGHT.search(prompt)
    if opened is not None:
        opening, closing = f"<{opened[1]}>", f"</{opened[1]}>"
        begin = min(place.start for place in closed.places if place.message == index)
        lead = closed.text[len(_common(prompt, closed.text)) : begin]
        if content.lstrip().startswith(opening):
            content = content.lstrip().removeprefix(opening).lstrip("\n")
        elif closing not in content and closing in lead:
            blank = content[: len(content) - len(content.lstrip())]
            written = lead[lead.index(closing) :].removesuffix(blank)
            segments.append(TextSegment(written, turn=index))
    return [*segments, TextSegment(content, content=True, turn=index)]


def text_of(segments: Sequence[TextSegment]) -> str:
    """The text that segments make."""
    return "".join(segment.text for segment in segments)


def cut_segments(
    text: str, places: Sequence[ContentPlace], regions: Mapping[int, tuple[int, int]]
) -> list[TextSegment]:
    """`text` cut at the borders of contents and of trained regions (by turn)."""
    borders = {0, len(text)}
    for place in places:
        borders |= {min(place.start, len(text)), min(place.end, len(text))}
    for region in regions.values():
        borders |= set(region)
    ordered = sorted(borders)
    segments = []
    for start, end in pairwise(ordered):
        segments.append(
            TextSegment(
                text[start:end],
                content=any(place.start <= start < place.end for place in places),
                turn=next((t for t, (a, b) in regions.items() if a <= start < b), None),
            )
        )
    return segments


def _find(
    render: Renderer,
    messages: Sequence[Message],
    generate: bool,
    wanted: frozenset[int],
    text: str,
) -> list[ContentPlace] | None:
    """Places of the contents in `text`, or None where the template looks into them."""
    if not wanted:
        return []
    name = "qz0"
    while name in text:
        name += "z"
    for apart in (False, True):
        held: dict[str, tuple[int, str]] = {}
        marked: list[Message] = []
        for index, message in enumerate(messages):
            if index not in wanted:
                marked.append(message)
                continue
            pieces = _TAGS.split(message["content"]) if apart else [message["content"]]
            written = ""
            for number, piece in enumerate(pieces):
                inner = piece.strip()
                if number % 2 or not inner:
                    written += piece
                    continue
                placeholder = f"{name}m{index}p{number}x"
                held[placeholder] = (index, inner)
                written += piece.replace(inner, placeholder, 1)
            marked.append({**message, "content": written})
        try:
            places = _filled(render(marked, generate), held, name, text)
        except FormatError:
            continue  # a template that takes some contents only
        if places is not None:
            return places
    return None


def _filled(
    written: str, held: Mapping[str, tuple[int, str]], name: str, text: str
) -> list[ContentPlace] | None:
    """Places of the placeholders' texts once they are put in, or None where that is not `text`."""
    places: list[ContentPlace] = []
    made = ""
    position = 0
    for match in re.finditer(re.escape(name) + r"m\d+p\d+x", written):
        if match[0] not in held:
            return None
        index, content = held[match[0]]
        made += written[position : match.start()]
        places.append(ContentPlace(len(made), len(made) + len(content), index))
        made += content
        position = match.end()
    made += written[position:]
    return places if made == text else None


def _places(segments: Sequence[TextSegment], start: int, message: int) -> list[ContentPlace]:
    """Places of the contents among segments of a text that begin at `start`."""
    places = []
    for segment in segments:
        if segment.content:
            places.append(ContentPlace(start, start + len(segment.text), message))
        start += len(segment.text)
    return places


def _common(one: str, other: str) -> str:
    size = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return one[:size]
