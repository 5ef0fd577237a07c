"""Reads what a chat request says of functions and of the form of the reply.

Neighbours: `wire.py` (the rest of the request), `grammar.py` (what a reply is held to),
`conversation.py` (calls and results among the messages).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.openai_api.grammar import reply_grammar
from agentc_backends.openai_api.values import flag, refused

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
        raise refused("tools", "two functions have the same name")
    choice, named = _choice(body, names)
    several = flag(body, "parallel_tool_calls", True)
    if "parallel_tool_calls" in body and not functions:
        raise refused("parallel_tool_calls", "needs tools")
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
        raise refused("tools", f"must be a list of at most {MAX_TOOLS} functions")
    return tools


def _function(index: int, tool: Any) -> dict[str, Any]:
    place = f"tools[{index}]"
    if not isinstance(tool, dict) or tool.get("type") != "function" or len(tool) != 2:
        raise refused("tools", f"{place} must be {{type: function, function: {{...}}}}")
    function = tool.get("function")
    if not isinstance(function, dict):
        raise refused("tools", f"{place}.function must be an object")
    given = {name: value for name, value in function.items() if value is not None}
    if unknown := sorted(set(given) - _FUNCTION_FIELDS):
        raise refused("tools", f"{place}.function has unsupported fields: {', '.join(unknown)}")
    if not isinstance(given.get("name"), str) or not _NAME.fullmatch(given["name"]):
        raise refused("tools", f"{place}.function.name must be a word of {_NAME.pattern}")
    for name, kind in (("description", str), ("parameters", dict), ("strict", bool)):
        if not isinstance(given.get(name, kind()), kind):
            raise refused("tools", f"{place}.function.{name} must be of type {kind.__name__}")
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
            raise refused("tool_choice", "must be {type: function, function: {name: ...}}")
        if name not in names:
            raise refused("tool_choice", f"{name!r} is none of the tools")
        return "named", name
    if choice not in ("none", "auto", "required"):
        raise refused("tool_choice", "must be none, auto, required, or name a function")
    if choice != "none" and not names:
        raise refused("tool_choice", f"{choice} needs tools")
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
        raise refused("response_format", "json_schema must be {name: ..., schema: {...}}")
    raise refused("response_format", "type must be text, json_object or json_schema")
