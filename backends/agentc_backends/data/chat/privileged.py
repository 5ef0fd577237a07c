"""Hidden text before a conversation, as critics read it: one function for their training and for
whoever asks them afterwards, since another prefix would be another critic.

Neighbours: `tokens.py`; the template stands in a critic's `agentc_critic.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

PLACE = "{privileged}"
"""Where a template has the hidden text."""
FIRST_MESSAGE = "first_message"
"""The template stands in the first message; else before the conversation's first token."""

Message: TypeAlias = dict[str, Any]


def with_privileged(
    messages: Sequence[Mapping[str, Any]], template: str, text: str
) -> list[Message]:
    """The conversation with the filled template before its first message's text, inside the same
    message, so that every chat template takes it; an empty line stands between."""
    prefix = filled(template, text)
    first, *rest = (dict(message) for message in messages)
    return [{**first, "content": f"{prefix}\n\n{first['content']}"}, *rest]


def filled(template: str, text: str) -> str:
    """The template with the hidden text. Not by `format`: hidden code is full of braces, and so
    may a template be."""
    return template.replace(PLACE, text)
