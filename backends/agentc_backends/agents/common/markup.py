"""What models write around an action that is no part of it: thinking blocks, Markdown, JSON.

Only marks that wrap the action go: `*` and backticks inside of one stay. Neighbour: `parse.py`.
Standard library only.
"""

from __future__ import annotations

import json
import re
from typing import Any

EMPHASIS = r"[*_~`]"
LINE_MARKS = r"(?:>[ \t]*)*(?:#{1,6}[ \t]+|[-*+][ \t]+)?"
"""A quotation, then a heading or an item of a list, before the text of a line."""
LIST_NUMBER = r"(?:\d+[.)][ \t]+)?"

_THINKING = "think|thinking|thought|reasoning|seed:think"
_BLOCK = re.compile(
    rf"<({_THINKING})>.*?(?:</\1>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)|◁think▷.*?(?:◁/think▷|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CLOSE = re.compile(rf"</(?:{_THINKING})>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_FENCED = re.compile(r"(`{3,}|~{3,})[^\n`]*\n(.*?)\n?[ \t]*\1", re.DOTALL)
_FENCE_LINE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[^\n`]*")
_TAGS = "b|strong|i|em|u|code|action"
_TAGGED = re.compile(rf"<({_TAGS})>(.*)</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_TAGS = re.compile(rf"^(?:</?(?:{_TAGS})>\s*)+", re.IGNORECASE)
_CLOSE_TAGS = re.compile(rf"(?:\s*</(?:{_TAGS})>)+$", re.IGNORECASE)
_WRAPS = ("```", "~~~", "``", "`", "***", "___", "**", "__", "~~", "*", "_")
_LONG = tuple(mark for mark in _WRAPS if len(mark) > 1)
_WRITTEN = ("action", "Action")
_OTHER_FIELDS = {"thought", "thoughts", "reasoning", "think", "thinking"}


def without_thinking(reply: str) -> str:
    """A reply without its thinking blocks. One that is not closed reaches to the end; where only
    the end of one is in the reply, as after a prompt that opens it, all before it goes."""
    return _CLOSE.split(_BLOCK.sub("", reply))[-1].strip()


def without_leading_thinking(reply: str) -> str:
    """The same of blocks before everything else: for replies whose text may be anything."""
    text = reply.strip()
    while (block := _BLOCK.match(text)) is not None:
        text = text[block.end() :].strip()
    first = _CLOSE.search(text)
    if first is not None and not _BLOCK.search(text[: first.end()]):
        return text[first.end() :].strip()
    return text


def unfenced(text: str) -> str:
    """The content of a code fence that is all of a text; else the text."""
    match = _FENCED.fullmatch(text)
    return match.group(2).strip() if match else text


def read_json(text: str) -> dict[str, Any] | None:
    """The object of a text that is one in JSON; None where it is none."""
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def named_action(fields: dict[str, Any]) -> str | None:
    """The text of an object's `action`, where nothing but thoughts is beside it."""
    names = [name for name in fields if name in _WRITTEN]
    if len(names) != 1 or not {name.lower() for name in fields} <= {"action", *_OTHER_FIELDS}:
        return None
    action = fields[names[0]]
    return action.strip() if isinstance(action, str) else None


def clean_action(action: str, before: str = "") -> str:
    """An action without the marks that wrap it. `before` is the text of its line before it, in
    which a mark may open that ends behind the action."""
    action = action.strip()
    while action:
        shorter = _without_outer(action, before)
        if shorter == action:
            break
        action = shorter
    return action


def _without_outer(action: str, before: str) -> str:
    """One layer less, where there is one."""
    action = unfenced(action)
    fields = read_json(action)
    if fields is not None:
        written = named_action(fields)
        return action if written is None else written
    tagged = _TAGGED.fullmatch(action)
    if tagged is not None:
        return tagged.group(2).strip()
    action = _CLOSE_TAGS.sub("", _OPEN_TAGS.sub("", action))
    for mark in _WRAPS:
        inner = action[len(mark) : -len(mark)]
        if not (action.startswith(mark) and action.endswith(mark) and inner):
            continue
        spaced = inner != inner.strip() and mark[0] != "`"
        if mark not in inner and not spaced and not inner.startswith(mark[0]):
            return inner.strip()
    return _without_half(action, before).strip()


def _without_half(action: str, before: str) -> str:
    """Without a mark that the action only closes or only opens."""
    lines = action.split("\n")
    fences = [number for number, line in enumerate(lines) if _FENCE_LINE.fullmatch(line)]
    if len(fences) == 1 and fences[0] in (0, len(lines) - 1):
        del lines[fences[0]]
        return "\n".join(lines)
    for mark in _LONG:
        if action.count(mark) == 1:
            if action.endswith(mark):
                return action.removesuffix(mark)
            if action.startswith(mark):
                return action.removeprefix(mark)
    last = action[-1]
    if last in "*_`" and action.count(last) == 1 and before.count(last) % 2:
        return action[:-1]
    return action
