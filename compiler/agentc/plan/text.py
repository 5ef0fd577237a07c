"""The text of plan.json. Apart from render.py, since most commands need no text."""

from __future__ import annotations

import json

import orjson

from agentc.collection import paused_collection
from agentc.kinds.field import Json
from agentc.plan.job import Plan
from agentc.plan.render import plan_document

_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


@paused_collection()
def render_plan(plan: Plan) -> str:
    """The same plan gives the same bytes everywhere."""
    return document_text(plan_document(plan))


def document_text(document: Json) -> str:
    """Plain JSON for a file: sorted keys, two-space indent, a newline at the end."""
    try:
        return orjson.dumps(document, option=_LAYOUT).decode("utf-8")
    except orjson.JSONEncodeError:  # a whole number of more than 64 bits, say
        return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
