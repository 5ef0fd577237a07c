"""Finds the action in a reply.

`line` takes the first line that starts with `Action:` (else the first `Action:` anywhere, to the
end of its line). `rest` is the rule of ETO's code: the first `Action:` anywhere, and everything
after it to the end of the reply, later lines and later `Action:` marks included. `last` and
`after_last` are those of Agent-R's code: everything after the last `Action:`, in its search without
a leading number and dot, in its evaluation as it stands. Under every rule nothing in a thinking
block is an action, and Markdown around one is no part of it (`markup.py`).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from agentc_backends.agents.common.functions import called_action
from agentc_backends.agents.common.markup import (
    EMPHASIS,
    LINE_MARKS,
    LIST_NUMBER,
    clean_action,
    named_action,
    read_json,
    unfenced,
    without_leading_thinking,
    without_thinking,
)
from agentc_backends.agents.common.prompt import ReplyFormat

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
        return called_action(without_leading_thinking(reply))
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
