"""Pages that agents made beside those that were meant, as pictures: of each stage a few episodes.

An environment reports both with the last step (`report.pictures`, JPEG in base64). Rows are
foreign: what is no such picture is not shown, and no page is ever shown as a page.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from agentc_backends.results.report.collect import Collection
from agentc_backends.results.report.packed import spread

_MOST, _MOST_BYTES = 6, 200_000
_JPEG = b"\xff\xd8\xff"


def page_pictures(collection: Collection) -> list[dict[str, Any]]:
    """`{"name", "total", "rows": [{"id", "reward", "parts", "render", "made", "wanted"}]}` of each
    stage with such episodes; pictures as addresses of `data:`, None where there is none."""
    stages = []
    for node in collection.of_type("Trajectories"):
        seen = [row for row in node.rows if _pictures(row)]
        if seen:
            rows = [_row(row) for row in spread(seen, _MOST)]
            stages.append({"name": node.name, "total": len(seen), "rows": rows})
    return stages


def _row(row: dict[str, Any]) -> dict[str, Any]:
    report = row["report"]
    parts = report.get("parts")
    numbers = parts.items() if isinstance(parts, dict) else ()
    return {
        "id": row["id"],
        "reward": row["reward"],
        "render": str(report.get("render")),
        "parts": [(str(k), v) for k, v in numbers if isinstance(v, int | float)],
        **_pictures(row),
    }


def _pictures(row: dict[str, Any]) -> dict[str, str | None]:
    """Empty where an episode has none at all."""
    match row.get("report"):
        case {"pictures": dict(pictures)}:
            return {name: _address(pictures.get(name)) for name in ("made", "wanted")}
    return {}


def _address(picture: object) -> str | None:
    """Encoded anew, so that nothing but a JPEG's letters is in it."""
    if not isinstance(picture, str) or len(picture) > _MOST_BYTES:
        return None
    try:
        content = base64.b64decode(picture, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not content.startswith(_JPEG):
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
