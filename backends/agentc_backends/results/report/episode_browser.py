"""Episodes as the page carries them: all, packed into blocks that the script unpacks when they are
looked at; with rewards, ends, and pictures of pages that agents made.

A block is JSON, compressed by zlib, as base64: nothing in it can be taken for markup. An index of
each stage has what lists and filters need; texts are in blocks of about 250 kB, each once a block
(the prompt is the same in every episode). `templates/episodes.js` reads this."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from agentc_backends.results.report.collect import Collection, ExperimentJob

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
        "rewards": _turn_rewards(row),
    }


def _turn_rewards(row: dict[str, Any]) -> list[float] | None:
    """The reward of each turn; None where no turn but the last has one."""
    rewards = row.get("turn_rewards") or row.get("rewards") or []
    return rewards if any(rewards[:-1]) else None


def _message(message: dict[str, Any], texts: dict[str, int]) -> list[Any]:
    """Who, what was seen, and all that was generated where that is more (else None); then notes."""
    # What a function gives is what the environment said.
    role = "u" if message["role"] == "tool" else message["role"][0]
    functions = [json.dumps(tool, ensure_ascii=False) for tool in message.get("tools", ())]
    said = [message["content"]] if message["content"] or not functions else []
    seen = [role, _text("\n".join([*said, *functions]), texts)]
    notes = [*(["truncated"] if message.get("cut") else [])]
    notes += ["not trained"] if message.get("loss") is False else []
    raw = _text(message["raw"], texts) if "raw" in message else None
    return seen if raw is None and not notes else [*seen, raw, *notes]


def _lines(report: dict[str, Any]) -> str:
    """What the environment reported, a line for each value."""
    return "\n".join(
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in report.items()
    )


def _text(text: str, texts: dict[str, int]) -> int:
    if len(text) > TEXT_LIMIT:
        text = f"{text[:TEXT_LIMIT]}\n... {len(text) - TEXT_LIMIT} more characters"
    return texts.setdefault(text, len(texts))


def episode_stages(collection: Collection, per_stage: int) -> dict[str, Any]:
    """`{"first", "stages": [{"name", "total", "shown", "ends", "starts"}], "blocks"}`; at most
    `per_stage` episodes of a stage, spread evenly. `first` is what the page opens with, `blocks`
    are packed texts by the ids that their elements get."""
    nodes = collection.of_type("Trajectories")
    stages, blocks = [], {}
    for place, node in enumerate(nodes):
        packed = pack(spread(node.rows, per_stage), MOST_BYTES // len(nodes))
        blocks[f"index-{place}"] = packed.index
        blocks |= {f"episodes-{place}-{n}": block for n, block in enumerate(packed.blocks)}
        stages.append(
            {
                "name": node.name,
                "total": len(node.rows),
                "shown": len(packed.rows),
                "ends": dict(Counter(row["end"] for row in packed.rows).most_common()),
                "starts": packed.starts,
            }
        )
    measured = set(played_by(collection).values())
    names = [stage["name"] for stage in stages]
    evaluated = [name for name in names if name in measured]
    return {
        "first": (evaluated or names or [""])[-1],
        "stages": stages,
        "blocks": blocks,
    }


def played_by(collection: Collection) -> dict[str, str]:
    """The name of the job whose episodes an evaluation measured, by the evaluation's."""
    found = {}
    for node in collection.of_type("Metrics"):
        played = [
            parent.name
            for _, name in node.parents
            if (parent := collection.by_object.get(name)) and parent.type == "Trajectories"
        ]
        if len(played) == 1:
            found[node.name] = played[0]
    return found


def episodes_link(stage: str, **more: object) -> str:
    """Where the page shows the episodes of a stage: all, or those with an `end`, with rewards from
    `low` to `high`, or beside those of another stage (`against`, `moved`)."""
    words = {"stage": stage, **{name: value for name, value in more.items() if value != ""}}
    return f"#trajectories&{urlencode(words)}"


def rewards(node: ExperimentJob) -> dict[str, Any]:
    """How rewards and ends are distributed over the episodes of a stage; `bins` are (label, count,
    least, most)."""
    values = [row["reward"] for row in node.rows if row["reward"] is not None]
    return {
        "name": node.name,
        "n": len(node.rows),
        "n_null": len(node.rows) - len(values),
        "mean": sum(values) / len(values) if values else None,
        "bins": _bins(values),
        "ends": dict(Counter(row["end"] for row in node.rows).most_common()),
    }


def _bins(values: list[float], most: int = 10) -> list[tuple[str, int, float, float]]:
    """One for each value when there are few, else of equal width."""
    distinct = sorted(set(values))
    if len(distinct) <= most:
        counts = Counter(values)
        return [(f"{value:.3g}", counts[value], value, value) for value in distinct]
    low, high = distinct[0], distinct[-1]
    width = (high - low) / most
    found: list[list[float]] = [[] for _ in range(most)]
    for value in values:
        found[min(int((value - low) / width), most - 1)].append(value)
    return [
        (f"{low + i * width:.2g}", len(each), min(each, default=low), max(each, default=low))
        for i, each in enumerate(found)
    ]


# Pictures: an environment reports the page that was made and the one that was wanted with the last
# step (`report.pictures`, JPEG in base64). Rows are untrusted: what is no such picture is not
# shown, and no page is ever shown as a page.

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
