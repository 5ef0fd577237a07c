"""Texts to and from an MCP server: an agent's words as a tool call or the final answer, results as
text, and what the server prints beside the protocol.

Whether arguments are right is the server's to say, and its words go to the agent; a text that is no
call at all is answered here (`NotAnActionError`) and never sent."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.external.environment import NotAnActionError

ANSWER = "answer"
"""The word before a final answer."""
_CALL = re.compile(r"([^\s{]+)\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as the server lists it; `schema` is that of its arguments, an object."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class McpCall:
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    text: str


class ToolActions:
    """The actions of a session: its tools, and the answer where the task wants one."""

    def __init__(self, tools: Sequence[ListedTool], answers: bool) -> None:
        """Raises ValueError where there is no tool, or one whose name is the answer's."""
        self._names = [tool.name for tool in tools]
        self._answers = answers
        if not tools:
            raise ValueError("the server lists no tool")
        if answers and ANSWER in self._names:
            raise ValueError(
                f"the server has a tool `{ANSWER}`, which is how agents give their answer: leave "
                "it out of `tools`, or let a `pattern` say what a success is"
            )
        end = f" `{ANSWER}` and a text ends the task with that answer." if answers else ""
        self._form = (
            "An action is the name of a tool and a JSON object of its arguments, such as "
            f"{_example(tools[0])}.{end}"
        )
        self.told = "\n".join(["Tools:", *(_described(tool) for tool in tools), self._form])

    def read(self, text: str) -> McpCall | FinalAnswer:
        """Raises NotAnActionError."""
        match = _CALL.fullmatch(text.strip())
        if match is None:
            raise NotAnActionError(f"That is no action. {self._form}")
        name, rest = match[1], match[2]
        if self._answers and name.rstrip(":").lower() == ANSWER:
            return FinalAnswer(rest)
        if name not in self._names:
            tools = ", ".join(self._names)
            raise NotAnActionError(f"`{name[:80]}` is no tool; there are {tools}. {self._form}")
        try:
            arguments = json.loads(rest) if rest else {}
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            raise NotAnActionError(f"What follows `{name}` is no JSON object. {self._form}")
        return McpCall(name, arguments)


def chosen(tools: Sequence[ListedTool], names: Sequence[str]) -> list[ListedTool]:
    """Those of a spec's `tools`, in its order; all where it names none. Raises ValueError."""
    known = {tool.name: tool for tool in tools}
    for name in names:
        if name not in known:
            has = ", ".join(f"`{each}`" for each in known) or "none"
            raise ValueError(f"`tools` names `{name}`, the server has {has}")
    return [known[name] for name in names] if names else list(tools)


def _described(tool: ListedTool) -> str:
    """The tool's name and what it does; a line for each argument, with its type."""
    required = tool.schema.get("required", [])
    lines = [f"{tool.name}: {' '.join(tool.description.split())}".rstrip(": ")]
    for name, about in _arguments(tool):
        needed = ", required" if name in required else ""
        says = " ".join(str(about.get("description", "")).split())
        lines.append(f"  {name} ({_kind(about)}{needed}): {says}".rstrip(": "))
    return "\n".join(lines)


def _example(tool: ListedTool) -> str:
    required = tool.schema.get("required", [])
    parts = (f'"{name}": ...' for name, _ in _arguments(tool) if name in required)
    return f"`{tool.name} {{{', '.join(parts)}}}`"


def _arguments(tool: ListedTool) -> list[tuple[str, Mapping[str, Any]]]:
    known = tool.schema.get("properties", {})
    return [(name, about if isinstance(about, Mapping) else {}) for name, about in known.items()]


def _kind(about: Mapping[str, Any]) -> str:
    """The type as a schema says it; words where it lists them, else JSON of what it says."""
    if "enum" in about:
        return "one of " + ", ".join(json.dumps(each, ensure_ascii=False) for each in about["enum"])
    kinds = about.get("type")
    if isinstance(kinds, list):
        return " or ".join(map(str, kinds))
    if kinds is not None:
        return str(kinds)
    options = about.get("anyOf") or about.get("oneOf") or []
    named = [str(each["type"]) for each in options if isinstance(each, Mapping) and "type" in each]
    return " or ".join(named) or "any"


NOTHING = "(no content)"


def result_text(content: Sequence[Mapping[str, Any]], structured: Any = None) -> str:
    """Texts as they are, joined by newlines, and `[image: image/png]` for what is none. A result
    without content is its `structuredContent`, as JSON."""
    if content:
        return "\n".join(_block(block) for block in content)
    return NOTHING if structured is None else json.dumps(structured, ensure_ascii=False)


def _block(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": uri}} | {"type": "resource_link", "uri": uri}:
            return f"[resource: {uri}]"
    return f"[{block.get('type', 'unknown')}: {block.get('mimeType', 'no type')}]"


# The first line that a server prints beside the protocol: mostly a `print` that was left in.

_SDK = "mcp.client.stdio"
_SHOWN = 120


class StrayOutput(logging.Handler):
    """Replaces the SDK's traceback for each such line. `last` is the latest one; each different
    line is reported once."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        errors = getattr(error, "errors", None)
        found = errors()[0].get("input") if callable(errors) else None
        if not isinstance(found, str):
            print(f"MCP: {record.getMessage()}", file=sys.stderr, flush=True)
            return
        self.last = said = f"its standard output holds what is no message: {_short(found)}"
        if said not in self._told and len(self._told) < 10:
            self._told.add(said)
            print(f"{said}; a server over stdio prints to standard error", file=sys.stderr)


def _short(line: str) -> str:
    return json.dumps(line if len(line) <= _SHOWN else line[:_SHOWN] + "...")


def listen() -> StrayOutput:
    """Take over what the SDK logs of the server's output."""
    logger = logging.getLogger(_SDK)
    for handler in logger.handlers:
        if isinstance(handler, StrayOutput):
            return handler
    made = StrayOutput()
    logger.addHandler(made)
    logger.propagate = False
    return made
