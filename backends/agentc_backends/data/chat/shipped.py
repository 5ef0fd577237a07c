"""Segments of a conversation under the chat template that a tokenizer ships (format `tokenizer`).

The template is a black box: trained regions are found by rendering prefixes. A template that
writes earlier turns differently once later ones exist is refused. Neighbour: `formats.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from agentc_backends.data.chat.formats import FormatError, Message, TextSegment

Renderer: TypeAlias = Callable[[Sequence[Message], bool], str]
"""(messages, add_generation_prompt) -> text, as the tokenizer's own template writes it."""


def shipped_segments(
    render: Renderer, messages: Sequence[Message], control_tokens: Sequence[str]
) -> list[TextSegment]:
    """Segments of `messages`.

    The region of an assistant turn runs from where the generation prompt ends through the first
    control token after the reply (through the whole text that closes the turn when there is none).
    Raises FormatError when the rendering of a prefix is not a prefix of the rendering.
    """
    segments: list[TextSegment] = []
    written = ""
    start = 0
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = render(messages[:index], True)
        closed = render(messages[: index + 1], False)
        _require_prefix(written, prompt, index)
        _require_prefix(prompt, closed, index)
        segments += _plain(prompt[len(written) :], messages[start:index], control_tokens)
        segments += _reply(closed[len(prompt) :], message, index, control_tokens)
        written = closed
        start = index + 1
    whole = render(messages, False)
    _require_prefix(written, whole, len(messages))
    return segments + _plain(whole[len(written) :], messages[start:], control_tokens)


def _plain(
    text: str, messages: Sequence[Message], control_tokens: Sequence[str]
) -> list[TextSegment]:
    """Untrained text, with the contents of `messages` marked where they stand."""
    segments: list[TextSegment] = []
    position = 0
    for message in messages:
        content, found = _locate(text, message["content"], position, control_tokens)
        if found < 0:
            continue
        segments.append(TextSegment(text[position:found]))
        segments.append(TextSegment(content, content=True))
        position = found + len(content)
    segments.append(TextSegment(text[position:]))
    return [segment for segment in segments if segment.text]


def _reply(
    text: str, message: Message, turn: int, control_tokens: Sequence[str]
) -> list[TextSegment]:
    content, found = _locate(text, message["content"], 0, control_tokens)
    found = max(found, 0)
    tail = text[found + len(content) :]
    ends = [tail.index(token) + len(token) for token in control_tokens if token in tail]
    end = min(ends, default=len(tail))
    segments = [
        TextSegment(text[:found], turn=turn),
        TextSegment(content, content=True, turn=turn),
        TextSegment(tail[:end], turn=None if message.get("cut") else turn),
        TextSegment(tail[end:]),
    ]
    return [segment for segment in segments if segment.text]


def _locate(
    text: str, content: str, position: int, control_tokens: Sequence[str]
) -> tuple[str, int]:
    """The content as the template wrote it (as is, or stripped) and its place, -1 if absent."""
    for candidate in (content, content.strip()):
        found = text.find(candidate, position)
        if found >= 0:
            return candidate, found
    if any(token in content for token in control_tokens):
        raise FormatError(
            "a message holds a control token of the tokenizer and its template rewrites the "
            "message, so the two cannot be told apart; choose a built-in chat_format"
        )
    return "", -1


def _require_prefix(shorter: str, longer: str, index: int) -> None:
    if longer.startswith(shorter):
        return
    at = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), 0)
    raise FormatError(
        f"the tokenizer's chat template rewrites history: up to message {index} it writes "
        f"{shorter[max(at - 20, 0) : at + 20]!r} where it later writes "
        f"{longer[max(at - 20, 0) : at + 20]!r}, so a trained token would never be met at "
        "inference; choose a built-in chat_format"
    )
