"""The data behind the trajectory browser: a bounded choice of episodes, as JSON for the page.

Texts are kept once each (the prompt is the same in every episode) and rows refer to them. Nothing
here is markup: the page's script shows texts as text.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob

TEXT_LIMIT = 6_000


def browser_data(collection: Collection, per_stage: int) -> dict[str, Any]:
    """`{"texts", "stages": [{"name", "total", "shown", "ends", "rows"}]}`; at most `per_stage`
    episodes of a stage, spread evenly over its rows."""
    texts: dict[str, int] = {}
    stages = []
    for node in collection.of_type("Trajectories"):
        rows = node.rows
        chosen = spread(rows, per_stage)
        stages.append(
            {
                "name": node.name,
                "total": len(rows),
                "shown": len(chosen),
                "rows": [_row(row, texts) for row in chosen],
            }
        )
    return {"texts": list(texts), "stages": stages}


def rewards(node: ExperimentJob) -> dict[str, Any]:
    """How rewards and ends are distributed over the episodes of a stage."""
    values = [row["reward"] for row in node.rows if row["reward"] is not None]
    return {
        "name": node.name,
        "n": len(node.rows),
        "n_null": len(node.rows) - len(values),
        "mean": sum(values) / len(values) if values else None,
        "bins": _bins(values),
        "ends": dict(Counter(row["end"] for row in node.rows).most_common()),
    }


def _bins(values: list[float], most: int = 10) -> list[tuple[str, int]]:
    """(label, count): one for each value when there are few, else of equal width."""
    distinct = sorted(set(values))
    if len(distinct) <= most:
        counts = Counter(values)
        return [(f"{value:.3g}", counts[value]) for value in distinct]
    low, high = distinct[0], distinct[-1]
    width = (high - low) / most
    found = [0] * most
    for value in values:
        found[min(int((value - low) / width), most - 1)] += 1
    return [(f"{low + i * width:.2g}", count) for i, count in enumerate(found)]


def spread(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most so many, evenly over all."""
    if len(rows) <= most:
        return rows
    return [rows[i * len(rows) // most] for i in range(most)]


def _row(row: dict[str, Any], texts: dict[str, int]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "reward": row["reward"],
        "end": row["end"],
        "turns": row["turns"],
        "invalid": row["invalid"],
        "seed": row.get("seed"),
        "error": row.get("error"),
        "prompt": row["prompt_length"],
        "last": _text(row["last_observation"], texts) if row.get("last_observation") else None,
        "report": _text(_lines(row["report"]), texts) if row.get("report") else None,
        "messages": [_message(m, texts) for m in row["messages"]],
    }


def _message(message: dict[str, Any], texts: dict[str, int]) -> list[Any]:
    """Who, what was seen, and all that was generated where that is more."""
    seen = [message["role"][0], _text(message["content"], texts)]
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
