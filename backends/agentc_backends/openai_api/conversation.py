"""Reads the conversation of a request: messages, functions and their calls, the form of the reply.

A reply that must call a function or follow a JSON schema gets a grammar, in llguidance's dialect of
Lark. JSON is written as Python's `json.dumps` writes it, which is how chat templates write calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentc_backends.data.chat.tool_calls import CALL_OPENS, call_text
from agentc_backends.openai_api.values import flag, invalid_value

Message: TypeAlias = dict[str, Any]
"""`role`, `content` (a text), and `tool_calls` (of an assistant) or `tool_call_id` (of a result)
where there are any."""

MAX_MESSAGES = 1 << 14
MAX_ROLE_LETTERS = 64
"""Chat templates know roles of a word; some write any role that they are given."""
_SHAPE = "{role, content}, both text, and tool_calls or tool_call_id where functions are called"


def read_messages(body: Mapping[str, Any]) -> list[Message]:
    """The field `messages`. A content in parts of text is joined, one that is null is empty."""
    value = body.get("messages")
    if not isinstance(value, list) or not value:
        raise invalid_value("messages", "must be a list of at least one message")
    if len(value) > MAX_MESSAGES:
        raise invalid_value("messages", f"has {len(value)} messages, over {MAX_MESSAGES}")
    return [_message(f"messages[{i}]", message) for i, message in enumerate(value)]


def count_letters(conversation: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> int:
    """Letters that a conversation's texts hold, roles aside: its prompt has no fewer."""
    said = sum(len(message["content"]) for message in conversation)
    calls = [call for message in conversation for call in message.get("tool_calls", ())]
    written = sum(len(call["function"]["arguments"]) for call in calls)
    return said + written + sum(len(tool["function"].get("description", "")) for tool in tools)


def _message(place: str, message: Any) -> Message:
    if not isinstance(message, dict):
        raise invalid_value("messages", f"{place} must be {_SHAPE}")
    given = {name: value for name, value in message.items() if value is not None}
    role = given.pop("role", None)
    calls = given.pop("tool_calls", None) or []
    content = _text(place, given.pop("content", "" if calls else None))
    read: Message = {"role": role, "content": content}
    if not isinstance(role, str) or content is None:
        raise invalid_value("messages", f"{place} must be {_SHAPE}")
    if len(role) > MAX_ROLE_LETTERS:
        raise invalid_value(
            "messages", f"the role of {place} has {len(role)} letters, over {MAX_ROLE_LETTERS}"
        )
    if role == "tool":
        if not isinstance(given.get("tool_call_id"), str):
            raise invalid_value("messages", f"{place} is a result and needs tool_call_id, a text")
        read["tool_call_id"] = given.pop("tool_call_id")
    if calls:
        if role != "assistant":
            raise invalid_value("messages", f"{place}: only an assistant has tool_calls")
        read["tool_calls"] = [
            _call(f"{place}.tool_calls[{i}]", call) for i, call in enumerate(_list(place, calls))
        ]
    if given:
        named = ", ".join(sorted(given))
        raise invalid_value(
            "messages", f"{place} has unsupported fields ({named}); it must be {_SHAPE}"
        )
    return read


def _text(place: str, content: Any) -> str | None:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    for part in content:
        whole = isinstance(part, dict) and set(part) == {"type", "text"}
        if not whole or part["type"] != "text" or not isinstance(part["text"], str):
            raise invalid_value(
                "messages", f"{place} has a part that is no {{type: text, text: ...}}"
            )
    return "\n".join(part["text"] for part in content)


def _list(place: str, calls: Any) -> list[Any]:
    if not isinstance(calls, list):
        raise invalid_value("messages", f"{place}.tool_calls must be a list")
    return calls


def _call(place: str, call: Any) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    arguments = function.get("arguments", "{}") if isinstance(function, dict) else None
    number = call.get("id") if isinstance(call, dict) else None
    texts = [name, arguments, number]
    if not all(isinstance(each, str) for each in texts) or call.get("type") != "function":
        raise invalid_value(
            "messages", f"{place} must be {{id, type: function, function: {{name, arguments}}}}"
        )
    return {
        "id": number, "type": "function", "function": {"name": name, "arguments": arguments}
    }  # fmt: skip


TOOL_FIELDS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "response_format"})
MAX_TOOLS = 128
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_FUNCTION_FIELDS = {"name", "description", "parameters", "strict"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """`tools` as chat templates take them; `read`: calls are read out of the reply; `several`:
    more than one is reported; `grammar` is what the reply is held to, where it is, because of the
    request's field `cause`."""

    tools: tuple[dict[str, Any], ...] = ()
    read: bool = False
    several: bool = True
    grammar: str | None = None
    cause: str = ""


def read_tool_use(body: Mapping[str, Any]) -> ToolUse:
    """The fields of `TOOL_FIELDS`."""
    functions = [_function(i, tool) for i, tool in enumerate(_listed(body))]
    names = [function["name"] for function in functions]
    if len(set(names)) < len(names):
        raise invalid_value("tools", "two functions have the same name")
    choice, named = _choice(body, names)
    several = flag(body, "parallel_tool_calls", True)
    if "parallel_tool_calls" in body and not functions:
        raise invalid_value("parallel_tool_calls", "needs tools")
    schema = _schema(body)
    strict = any(function.get("strict") for function in functions)
    wanted = functions if named is None else [f for f in functions if f["name"] == named]
    callable_ = [] if choice == "none" else wanted
    called = choice in ("required", "named")
    several = several and named is None
    causes = {
        "tool_choice": called,
        "response_format": schema is not None,
        "tools": strict and bool(callable_),
    }
    cause = next((name for name, given in causes.items() if given), "")
    return ToolUse(
        tools=tuple(_for_templates(function) for function in functions),
        read=bool(callable_),
        several=several,
        grammar=reply_grammar(functions=callable_, called=called, several=several, schema=schema)
        if cause
        else None,
        cause=cause,
    )


def _listed(body: Mapping[str, Any]) -> list[Any]:
    tools = body.get("tools", [])
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        raise invalid_value("tools", f"must be a list of at most {MAX_TOOLS} functions")
    return tools


def _function(index: int, tool: Any) -> dict[str, Any]:
    place = f"tools[{index}]"
    if not isinstance(tool, dict) or tool.get("type") != "function" or len(tool) != 2:
        raise invalid_value("tools", f"{place} must be {{type: function, function: {{...}}}}")
    function = tool.get("function")
    if not isinstance(function, dict):
        raise invalid_value("tools", f"{place}.function must be an object")
    given = {name: value for name, value in function.items() if value is not None}
    if unknown := sorted(set(given) - _FUNCTION_FIELDS):
        raise invalid_value(
            "tools", f"{place}.function has unsupported fields: {', '.join(unknown)}"
        )
    if not isinstance(given.get("name"), str) or not _NAME.fullmatch(given["name"]):
        raise invalid_value("tools", f"{place}.function.name must be a word of {_NAME.pattern}")
    for name, kind in (("description", str), ("parameters", dict), ("strict", bool)):
        if not isinstance(given.get(name, kind()), kind):
            raise invalid_value("tools", f"{place}.function.{name} must be of type {kind.__name__}")
    return given


def _for_templates(function: Mapping[str, Any]) -> dict[str, Any]:
    """A function without what says how strictly it is to be followed."""
    shown = ("name", "description", "parameters")
    return {
        "type": "function",
        "function": {name: function[name] for name in shown if name in function},
    }


def _choice(body: Mapping[str, Any], names: list[str]) -> tuple[str, str | None]:
    """`none`, `auto`, `required`, or `named` with the name of the function to be called."""
    choice = body.get("tool_choice", "auto" if names else "none")
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if choice.get("type") != "function" or not isinstance(name, str):
            raise invalid_value("tool_choice", "must be {type: function, function: {name: ...}}")
        if name not in names:
            raise invalid_value("tool_choice", f"{name!r} is none of the tools")
        return "named", name
    if choice not in ("none", "auto", "required"):
        raise invalid_value("tool_choice", "must be none, auto, required, or name a function")
    if choice != "none" and not names:
        raise invalid_value("tool_choice", f"{choice} needs tools")
    return str(choice), None


def _schema(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The JSON schema that the reply must follow."""
    wanted = body.get("response_format", {"type": "text"})
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind == "json_schema":
        described = wanted.get("json_schema")
        schema = described.get("schema") if isinstance(described, dict) else None
        if isinstance(schema, dict):
            return schema
        raise invalid_value("response_format", "json_schema must be {name: ..., schema: {...}}")
    raise invalid_value("response_format", "type must be text, json_object or json_schema")


_WRITTEN = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_PLACE = '"\0"'
_ANY_OBJECT = {"type": "object"}


def reply_grammar(
    *,
    functions: Sequence[Mapping[str, Any]],
    called: bool,
    several: bool,
    schema: Mapping[str, Any] | None,
) -> str:
    """The grammar of a reply. `functions` are those that may be called (name, parameters);
    `called`: at least one must be; `several`: more than one may be. Where none need be called the
    reply is JSON by `schema`, or, without one, free text that calls may follow in."""
    rules: list[str] = []
    more = ' ("\\n" call)*' if several else ""
    if called:
        rules.append(f"start: call{more}")
    elif schema is not None:
        rules.append(f"start: call{more} | answer" if functions else "start: answer")
        rules.append(f"answer: {_json_rule(schema)}")
    else:
        # A text runs up to the tag that opens a call, and a rest holds no such tag.
        rules.append(f"start: {'(free body)*' if several else '(free body)?'} REST")
        rules.append(f"free[lazy]: /(.|\\n)*{CALL_OPENS}/")
        rules.append(f"REST: /(.|\\n)*/ & ~/(.|\\n)*{CALL_OPENS}(.|\\n)*/")
    if functions:
        if called or schema is not None:
            rules.append(f"call: {json.dumps(CALL_OPENS)} body")
        rules.append("body: " + " | ".join(f"body_{i}" for i in range(len(functions))))
    for index, function in enumerate(functions):
        text = call_text(function["name"], _PLACE).removeprefix(CALL_OPENS)
        before, after = text.split(_PLACE)
        arguments = _json_rule(function.get("parameters") or _ANY_OBJECT)
        rules.append(f"body_{index}: {json.dumps(before)} args_{index} {json.dumps(after)}")
        rules.append(f"args_{index}: {arguments}")
    return "\n".join(rules) + "\n"


def _json_rule(schema: Mapping[str, Any]) -> str:
    return "%json " + json.dumps({**schema, "x-guidance": _WRITTEN})
