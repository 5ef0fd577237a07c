"""Function calls in conversations: how they are written and read, what a chat template does with
them, and how rows of data hold them.

The notation is that of Hermes and Qwen: `<tools>`, `<tool_call>` and `<tool_response>` around JSON.
Messages are those of OpenAI's API. In rows of data the first message, a system one, has functions
as `tools`; replies hold their calls as the model wrote them, and results are messages of the role
`tool`. Standard library only."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentc_backends.data.chat.formats import FormatError

Json: TypeAlias = Mapping[str, Any]
CALL_OPENS, CALL_CLOSES = "<tool_call>", "</tool_call>"
_ARGUMENTS = re.compile(r'"arguments"\s*:\s*')


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a function; `arguments` is the JSON object as it was written."""

    name: str
    arguments: str


def call_text(name: str, arguments: str) -> str:
    """A call as a reply writes it. A call that was read from such a text gives the same text."""
    body = f'{{"name": {json.dumps(name)}, "arguments": {arguments}}}'
    return f"{CALL_OPENS}\n{body}\n{CALL_CLOSES}"


def plain_messages(messages: Sequence[Json], tools: Sequence[Json]) -> list[dict[str, str]]:
    """The conversation in messages of role and text alone: functions in the system text, calls in
    the replies, results (role `tool`) in the user's turns. Raises FormatError."""
    plain: list[dict[str, str]] = []
    if tools:
        messages = _with_system_text(messages, _tools_text(tools))
    behind_result = False
    for index, message in enumerate(messages):
        role, text = message["role"], message["content"]
        if role == "tool":
            result = f"<tool_response>\n{text}\n</tool_response>"
            if behind_result:
                plain[-1]["content"] += "\n" + result
            else:
                plain.append({"role": "user", "content": result})
        else:
            for call in message.get("tool_calls", ()):
                arguments = _arguments(index, call)
                text += ("\n" if text else "") + call_text(call["function"]["name"], arguments)
            plain.append({"role": role, "content": text})
        behind_result = role == "tool"
    return plain


def structured_messages(messages: Sequence[Json]) -> list[dict[str, Any]]:
    """The conversation for a template that renders calls by itself: their arguments as objects,
    which is what templates expect. Raises FormatError."""
    return [
        {
            **message,
            "tool_calls": [
                {
                    **call,
                    "function": {
                        "name": call["function"]["name"],
                        "arguments": json.loads(_arguments(index, call)),
                    },
                }
                for call in message["tool_calls"]
            ],
        }
        if message.get("tool_calls")
        else dict(message)
        for index, message in enumerate(messages)
    ]


class ToolCallReader:
    """Reads the calls out of a reply, all at once or while its text comes: what it gives does not
    depend on the pieces. White space beside calls is dropped; a call that is no JSON object with a
    name and arguments stays text."""

    def __init__(self) -> None:
        self._held = ""
        self._called = False

    def add(self, text: str) -> list[str | ToolCall]:
        """Texts and calls that are certain with this piece, in their order."""
        self._held += text
        found: list[str | ToolCall] = []
        while (at := self._held.find(CALL_OPENS)) >= 0:
            read = _read_call(self._held, at + len(CALL_OPENS))
            if read is None:  # not whole yet
                self._emit(found, at)
                return found
            call, end = read
            if call is None:
                self._emit(found, end, keep_space=True)
                continue
            before = self._held[:at].rstrip()
            found += [before] if before.strip() else []
            found.append(call)
            self._held = self._held[end:]
            self._called = True
        self._emit(found, len(self._held) - _beginning_of(CALL_OPENS, self._held))
        return found

    def end(self) -> list[str | ToolCall]:
        """What is left when the reply has ended."""
        rest, self._held = self._held, ""
        if self._called and not rest.strip():
            return []
        return [rest] if rest else []

    def _emit(self, found: list[str | ToolCall], certain: int, *, keep_space: bool = False) -> None:
        """Text up to there, but for white space at its end: a call may follow."""
        text = self._held[:certain]
        text = text if keep_space else text.rstrip()
        if text:
            found.append(text)
            self._held = self._held[len(text) :]


def read_reply(text: str) -> tuple[str, list[ToolCall]]:
    """The text of a whole reply beside its calls, and these."""
    reader = ToolCallReader()
    parts = [*reader.add(text), *reader.end()]
    words = "".join(part for part in parts if isinstance(part, str))
    return words, [part for part in parts if isinstance(part, ToolCall)]


def _read_call(text: str, start: int) -> tuple[ToolCall | None, int] | None:
    """The call whose body begins there, None for what is none, with the place behind it; None
    alone where the body may still become one."""
    close = text.find(CALL_CLOSES, start)
    while close >= 0:
        body = text[start:close]
        end = close + len(CALL_CLOSES)
        try:
            value = json.loads(body)
        except json.JSONDecodeError as error:
            if not error.msg.startswith("Unterminated string"):
                return None, end
        except RecursionError:
            return None, end
        else:
            return _call_of(value, body), end
        # The closing tag stands in a text among the arguments.
        close = text.find(CALL_CLOSES, end)
    return None


def _call_of(value: object, body: str) -> ToolCall | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", {})
    if not isinstance(arguments, dict):
        return None
    place = _ARGUMENTS.search(body)
    if place is not None:
        try:
            found, end = json.JSONDecoder().raw_decode(body, place.end())
        except json.JSONDecodeError:
            found, end = None, 0
        if found == arguments:
            return ToolCall(value["name"], body[place.end() : end])
    return ToolCall(value["name"], json.dumps(arguments, ensure_ascii=False))


def _arguments(index: int, call: Json) -> str:
    text: str = call["function"]["arguments"] or "{}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise FormatError(
            f"message {index} calls {call['function']['name']!r} with arguments that are no JSON "
            f"object: {text[:60]!r}"
        )
    return text


def _with_system_text(messages: Sequence[Json], text: str) -> list[Json]:
    if messages and messages[0]["role"] == "system":
        first = {"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}
        return [first, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _tools_text(tools: Sequence[Json]) -> str:
    listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    example = call_text("NAME", '{"ARGUMENT": VALUE}')
    return (
        f"# Functions\nThese can be called; each line is the JSON signature of one:\n<tools>\n"
        f"{listed}\n</tools>\nA call is a JSON object between tags, and several may follow one "
        f"another:\n{example}"
    )


def _beginning_of(tag: str, text: str) -> int:
    """Letters at the end of the text that the tag begins with."""
    longest = min(len(tag) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(tag[:size])), 0)


# What a tokenizer's own chat template does with functions is found out by having it render a call.

Render: TypeAlias = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], str]
"""(messages, tools) -> text."""

_PROBE_NAME = "find_probe"
_PROBE_ARGUMENTS = {"place": "shelf"}


class TemplateTools(enum.Enum):
    """UNKNOWN: it has no place for them. RENDERED: it writes calls in the notation that is read.
    FOREIGN: it writes them in another one."""

    UNKNOWN = enum.auto()
    RENDERED = enum.auto()
    FOREIGN = enum.auto()


def template_tools(render: Render) -> TemplateTools:
    """What the template does with functions and calls. Raises FormatError where it writes them in a
    notation that nobody here reads."""
    return require_readable(detect_tools(render))


def require_readable(found: TemplateTools) -> TemplateTools:
    """What was found. Raises FormatError where it is FOREIGN."""
    if found is TemplateTools.FOREIGN:
        raise FormatError(
            "the model's chat template writes calls of functions in a notation that this "
            "server does not read; it reads <tool_call> with JSON (Hermes, Qwen 2.5 and 3)"
        )
    return found


def detect_tools(render: Render) -> TemplateTools:
    """What the template does with functions and calls."""
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    function = {"name": _PROBE_NAME, "description": "Finds it.", "parameters": parameters}
    tool = {"type": "function", "function": function}
    asked = [{"role": "user", "content": "Find it."}]
    call = {
        "id": "call00001",
        "type": "function",
        "function": {"name": _PROBE_NAME, "arguments": _PROBE_ARGUMENTS},
    }
    made: list[Mapping[str, Any]] = [
        *asked,
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
    try:
        if _PROBE_NAME not in render(asked, [tool]):
            return TemplateTools.UNKNOWN
        _, calls = read_reply(render(made, [tool]))
    except FormatError:
        return TemplateTools.FOREIGN
    named = [found for found in calls if found.name == _PROBE_NAME]
    return TemplateTools.RENDERED if named else TemplateTools.FOREIGN


# Rows of data: `request_of` makes a server's request of a row, and `in_plain_text` is what a chat
# format without a place for functions writes of it. Both give the same tokens.

Message: TypeAlias = Mapping[str, Any]
Tools: TypeAlias = Sequence[Mapping[str, Any]]


def tools_of_row(messages: Sequence[Message]) -> Tools:
    """The functions of a conversation; none where it has none."""
    tools: Tools = messages[0].get("tools", ()) if messages else ()
    return tools


def has_functions(messages: Sequence[Message]) -> bool:
    """Whether a conversation declares functions, or holds results of some that it does not declare,
    as published data may."""
    return bool(tools_of_row(messages)) or any(m["role"] == "tool" for m in messages)


def request_of(messages: Sequence[Message]) -> tuple[list[dict[str, Any]], Tools]:
    """The messages and functions of a request to a server: roles and texts, a number for each
    result. Replies stay texts with their calls inside, so that a prompt goes on from the tokens
    that were generated. A first message that says nothing but its functions is left out."""
    tools = tools_of_row(messages)
    said = [
        {"role": m["role"], "content": m["content"]}
        | ({"tool_call_id": f"call{place:05}"} if m["role"] == "tool" else {})
        for place, m in enumerate(messages)
    ]
    if tools and not messages[0]["content"]:
        del said[0]
    return said, tools


def in_plain_text(messages: Sequence[Message]) -> Sequence[Message]:
    """The conversation with functions and results as texts of the system and the user; as many
    messages as before, with their marks. Raises FormatError as `plain_messages` does."""
    if not has_functions(messages):
        return messages
    plain = plain_messages(*request_of(messages))
    marked = [{n: v for n, v in message.items() if n != "tools"} for message in messages]
    return [{**was, **now} for was, now in zip(marked, plain, strict=True)]
