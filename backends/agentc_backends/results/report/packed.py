"""Episodes as the page carries them: all, packed into blocks that are unpacked when looked at.

A block is JSON, compressed by zlib, as base64: nothing in it can be taken for markup. An index of
each stage has what lists and filters need; texts are in blocks of about 250 kB, each once a block
(the prompt is the same in every episode). `templates/episodes.js` reads this.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

TEXT_LIMIT = 30_000
"""Characters of one text."""
_BLOCK = 250_000
"""Characters of texts after which a new block begins."""
MOST_BYTES = 32_000_000
"""Of all blocks of a page; what would be more is left out evenly, and the page says so."""


@dataclass(frozen=True, slots=True)
class PackedEpisodes:
    """`rows` are those that were taken; `starts` the number of the first one of each block."""

    rows: Sequence[dict[str, Any]]
    index: str
    starts: tuple[int, ...]
    blocks: tuple[str, ...]


def pack(rows: Sequence[dict[str, Any]], most_bytes: int) -> PackedEpisodes:
    """As many rows of trajectories as fit, spread evenly over all."""
    while True:
        starts, blocks = [], []
        for start, block in _blocks(rows):
            starts.append(start)
            blocks.append(block)
        size = sum(map(len, blocks))
        if size <= most_bytes or len(rows) <= 1:
            break
        rows = spread(rows, max(1, int(0.95 * len(rows) * most_bytes / size)))
    return PackedEpisodes(
        rows, _packed([_entry(row) for row in rows]), tuple(starts), tuple(blocks)
    )


def spread(rows: Sequence[dict[str, Any]], most: int) -> Sequence[dict[str, Any]]:
    """At most so many, evenly over all."""
    if len(rows) <= most:
        return rows
    return [rows[i * len(rows) // most] for i in range(most)]


def _blocks(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    texts: dict[str, int] = {}
    bodies: list[dict[str, Any]] = []
    size = start = 0
    for number, row in enumerate(rows):
        before = len(texts)
        bodies.append(_body(row, texts))
        size += sum(map(len, list(texts)[before:])) + 20 * len(row["messages"])
        if size >= _BLOCK or number == len(rows) - 1:
            yield start, _packed({"texts": list(texts), "rows": bodies})
            texts, bodies, size, start = {}, [], 0, number + 1


def _packed(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode("ascii")


def _entry(row: dict[str, Any]) -> list[Any]:
    """What a list shows of a row, in the order that the script knows."""
    names = ("id", "task_id", "reward", "end", "turns", "invalid")
    return [row.get(name) for name in names]


def _body(row: dict[str, Any], texts: dict[str, int]) -> dict[str, Any]:
    return {
        "error": row.get("error"),
        "prompt": row["prompt_length"],
        "last": _text(row["last_observation"], texts) if row.get("last_observation") else None,
        "report": _text(_lines(row["report"]), texts) if row.get("report") else None,
        "messages": [_message(m, texts) for m in row["messages"]],
    }


def _message(message: dict[str, Any], texts: dict[str, int]) -> list[Any]:
    """Who, what was seen, and all that was generated where that is more."""
    # What a function gives is what the environment said.
    role = "u" if message["role"] == "tool" else message["role"][0]
    functions = [json.dumps(tool, ensure_ascii=False) for tool in message.get("tools", ())]
    said = [message["content"]] if message["content"] or not functions else []
    seen = [role, _text("\n".join([*said, *functions]), texts)]
    return [*seen, _text(message["raw"], texts)] if "raw" in message else seen


def _lines(report: dict[str, Any]) -> str:
    """What the environment reported, a line for each value."""
    return "\n".join(
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in report.items()
    )


def _text(text: str, texts: dict[str, int]) -> int:
    if len(text) > TEXT_LIMIT:
        text = f"{text[:TEXT_LIMIT]}\n... {len(text) - TEXT_LIMIT} more characters"
    return texts.setdefault(text, len(texts))
