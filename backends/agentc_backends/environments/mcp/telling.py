"""Tells an agent what a tool's result holds: its texts, a word for what is none.

Works on the protocol's own JSON. Neighbour: `connection.py`, which has it from the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

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
