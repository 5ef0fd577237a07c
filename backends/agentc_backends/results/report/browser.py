"""What the page shows of episodes: the stages that have some, rewards and ends, and links to them.

Neighbours: `packed.py` packs the episodes themselves, `templates/episodes.js` shows them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from agentc_backends.results.report.collect import Collection, ExperimentJob
from agentc_backends.results.report.packed import MOST_BYTES, pack, spread


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
