"""Finds the action in a reply: a line `Action:`, JSON, a call of a function, or all of it.

Under every rule nothing in a thinking block is an action, and what wraps one (Markdown, JSON, tags)
is no part of it; `*` and backticks inside of an action stay. `parse_action` has the rules.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, TypeAlias

from agentc_backends.agents.common.prompts import ReplyFormat, action_in_call

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


ActionSpan: TypeAlias = Literal["line", "rest", "last", "after_last"]
ACTION_SPANS: tuple[ActionSpan, ...] = ("line", "rest", "last", "after_last")
ActionSpace: TypeAlias = Literal["optional", "required"]

_MARK = "Action:"
_SPACES = {"optional": r"[ \t]*", "required": r" [ \t]*"}
_FIRST_TURN = ("Action 1:", "Thought 1:")
_SPLIT_MARK = re.compile(rf"(?P<open>{EMPHASIS}{{1,3}})Action(?P=open)[ \t]*:")


def parse_action(
    reply: str,
    reply_format: ReplyFormat,
    *,
    span: ActionSpan = "line",
    space: ActionSpace = "optional",
    numbered: bool = False,
) -> str | None:
    """The action, stripped, or None when the reply holds none.

    `space` says whether a space must follow the colon (ETO: required for WebShop and ScienceWorld,
    optional for ALFWorld). In a `numbered` reply `Action 1:` is the mark where it stands at all.
    With `action_only` the whole reply, or its first line with text (`line`), is the action; with
    `text` it is always the whole one, and an empty reply an empty action. With `tools` it is what
    the one call of a function says.
    """
    if reply_format == "text":
        return without_leading_thinking(reply)
    if reply_format == "tools":
        return action_in_call(without_leading_thinking(reply))
    text = unfenced(without_thinking(reply))
    fields = read_json(text)
    if fields is not None:
        action = named_action(fields)
        return (action or None) if action or reply_format != "action_only" else text
    if reply_format == "action_only":
        return _whole(text, span)
    if text.startswith("{"):
        # An object that is broken off: what would be read of it ends in quotes and braces.
        return None
    text = _with_mark(text)
    word = _FIRST_TURN[0] if numbered and _FIRST_TURN[0] in text else _MARK
    mark = _mark_of(text, word, space, span)
    return None if mark is None else _after(text, mark, span, numbered=numbered)


def whole_reply(reply: str) -> str:
    """A reply without `Action:` as the action, under `no_action: whole_reply`. One with the mark
    announced an empty action."""
    return "" if has_mark(reply) else clean_action(without_thinking(reply))


def last_line(reply: str) -> str:
    """The last line of a reply without `Action:`, as the search of Agent-R's code takes it."""
    return clean_action(unfenced(without_thinking(reply)).rsplit("\n", 1)[-1])


def has_mark(reply: str) -> bool:
    """Whether an action was announced, be it an empty one."""
    return _MARK in _with_mark(without_thinking(reply))


def without_turn_numbers(reply: str) -> str:
    """`Action:` and `Thought:` for `Action 1:` and `Thought 1:`, as the search of Agent-R's code
    keeps replies: a model that numbers its turns counts each reply as its first."""
    for mark in _FIRST_TURN:
        reply = reply.replace(mark, mark.replace(" 1", ""))
    return reply.strip()


def _with_mark(text: str) -> str:
    """`**Action:**` for `**Action**:`."""
    return _SPLIT_MARK.sub(lambda mark: f"{mark['open']}{_MARK}{mark['open']}", text)


def _whole(text: str, span: ActionSpan) -> str | None:
    lines = text.splitlines()
    if span != "line" and len(lines) > 1:
        return clean_action(text) or None
    actions = (clean_action(re.sub(r"^[ \t]*" + LINE_MARKS, "", line)) for line in lines)
    return next(filter(None, actions), None)


def _mark_of(text: str, word: str, space: ActionSpace, span: ActionSpan) -> re.Match[str] | None:
    """The `Action:` that counts, with the emphasis that opens before it and ends behind it."""
    mark = (
        rf"(?P<open>{EMPHASIS}{{0,3}}){re.escape(word)}"
        rf"(?P<close>{EMPHASIS}{{1,3}}(?=\s|$)|(?P=open)|){_SPACES[space]}"
    )
    if span == "line":
        own_line = r"^[ \t]*" + LINE_MARKS + LIST_NUMBER
        return re.search(own_line + mark, text, re.MULTILINE) or re.search(mark, text)
    if span == "rest":
        return re.search(mark, text)
    marks = list(re.finditer(mark, text))
    return marks[-1] if marks else None


def _after(text: str, mark: re.Match[str], span: ActionSpan, *, numbered: bool) -> str | None:
    """What follows the mark, by the rule of `span`, without the marks of Markdown around it."""
    start = text.rfind("\n", 0, mark.start("open")) + 1
    before = text[start : mark.start("open")]
    action = text[mark.end() :]
    if span == "line":
        action = action.split("\n", 1)[0]
    elif before.lstrip().startswith(">"):
        action = re.sub(r"^[ \t]*>[ \t]?", "", action, flags=re.MULTILINE)
    opened = mark["open"]
    if opened and not mark["close"]:
        # It may end behind the action, or behind the action's line.
        first, *others = action.split("\n")
        action = "\n".join([first.rstrip().removesuffix(opened[::-1]), *others])
    if span == "last":
        action = re.sub(r"^\d+\.\s*", "", action.strip() if numbered else action)
    return clean_action(action, before) or None
