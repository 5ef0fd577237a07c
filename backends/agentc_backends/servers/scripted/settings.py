"""Settings of `serve.scripted`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.program.settings import setting

_REPLY = {
    "type": ["string", "array"],
    "items": {"type": "string"},
    "minItems": 1,
    "description": "The reply (`\\1` for groups of `match`), or several to draw from by seed.",
}
_RULE = {
    "type": "object",
    "properties": {
        "match": {
            "type": "string",
            "description": "A regular expression, looked for in the last user message.",
        },
        "turn": {"type": "integer", "minimum": 0, "description": "The number of replies so far."},
        "reply": _REPLY,
    },
    "required": ["reply"],
    "additionalProperties": False,
}


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedServer:
    """Settings of the server."""

    rules: tuple[Mapping[str, Any], ...] = setting(
        "The first rule that applies gives the reply: `match` is a regular expression looked "
        "for in the last user message, `turn` the number of replies so far, `reply` a text (with "
        "`\\1` for groups) or alternatives that are drawn by seed. No rule: an empty reply.", (),
        schema={"type": "array", "items": _RULE})
    max_model_len: int = setting("Longest prompt plus reply, in bytes.", 65536, minimum=16)
    delay_s: float = setting("Seconds before each reply.", 0.0, minimum=0, identity="placement")
# fmt: on
