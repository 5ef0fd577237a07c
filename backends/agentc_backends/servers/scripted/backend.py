"""Declares `serve.scripted`: replies by rule, in the light environment."""

from __future__ import annotations

import json
import re

from agentc.backend_api import LeaseDraft, OptionView, ServerBackend
from agentc.kinds.field import Field, Json, integer, number
from agentc_backends.software import LIGHT

_REPLY: dict[str, Json] = {
    "type": ["string", "array"],
    "items": {"type": "string"},
    "minItems": 1,
    "description": "The reply (`\\1` for groups of `match`), or several to draw from by seed.",
}
FIELDS: tuple[Field, ...] = (
    Field(
        name="rules",
        schema={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "match": {
                        "type": "string",
                        "description": "A regular expression, looked for in the last user message.",
                    },
                    "turn": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "The number of replies so far.",
                    },
                    "reply": _REPLY,
                },
                "required": ["reply"],
                "additionalProperties": False,
            },
        },
        doc="The first rule that applies gives the reply: `match` is a regular expression looked "
        "for in the last user message, `turn` the number of replies so far, `reply` a text (with "
        "`\\1` for groups) or alternatives that are drawn by seed. No rule: an empty reply.",
        default=[],
    ),
    integer("max_model_len", "Longest prompt plus reply, in bytes.", 65536, minimum=16),
    number("delay_s", "Seconds before each reply.", 0.0, minimum=0, identity="placement"),
)


_PLACEHOLDERS = ("host", "port", "ready_file", "model", "served_name")


def _lease(options: OptionView) -> LeaseDraft:
    program = ["-m", "agentc_backends.servers.scripted.job_serve", "--die-with-parent"]
    program += ["--model", "{model}", "--served-name", "{served_name}"]
    program += ["--host", "{host}", "--port", "0", "--ready-file", "{ready_file}"]
    program += ["--rules", _rules(options)]
    program += ["--max-model-len", str(options.integer("max_model_len"))]
    program += ["--delay", str(options.number("delay_s"))]
    return LeaseDraft(
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=tuple(program),
        identity=options.identity(),
        port="chosen",
        probe="/health",
        identity_check="model",
        ready_timeout_s=60.0,
        capabilities=BACKEND.capabilities,
    )


def _rules(options: OptionView) -> str:
    rules = options.get("rules")
    assert isinstance(rules, list)
    for index, rule in enumerate(rules):
        pattern = rule.get("match") if isinstance(rule, dict) else None
        try:
            re.compile(str(pattern or ""))
        except (re.error, RecursionError, OverflowError) as error:
            options.refuse(
                f"rules.{index}",
                f"`match` of rule {index} is no regular expression: {error}",
                fix=f"write `{re.escape(str(pattern))}` for the text itself",
            )
    text = json.dumps(rules, sort_keys=True)
    for name in _PLACEHOLDERS:
        # A reply may speak of {model}; the runtime fills placeholders in every word.
        text = text.replace("{" + name + "}", "\\u007b" + name + "}")
    return text


BACKEND = ServerBackend(
    id="serve.scripted",
    version=1,
    doc="Replies by rule, whatever the checkpoint: for tests and dry runs of a pipeline.",
    software=LIGHT,
    lease=_lease,
    fields=FIELDS,
    capabilities=frozenset(
        {"chat", "completions", "logprobs", "token_ids", "scoring", "seed", "stop", "reload", "cpu"}
        | {"tools"}
    ),
    loads_model=False,
)
