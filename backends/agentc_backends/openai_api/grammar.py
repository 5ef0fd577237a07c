"""What a reply is held to, as a grammar in llguidance's dialect of Lark.

A reply is held to functions that must be called, or to a JSON schema that it must follow. JSON is
written as Python's `json.dumps` writes it, which is how chat templates write calls.
Neighbours: `tools.py` (what was asked for), `data/chat/tool_calls.py` (the notation of calls).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.data.chat.tool_calls import CALL_OPENS, call_text

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
