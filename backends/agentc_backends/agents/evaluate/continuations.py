"""Rewards of steps by continuation: what episodes that went on from a trajectory were worth on
average, for each turn of it (Monte Carlo, as in IPR, arXiv 2406.11176, section 3.1).

The reward of a step is the mean over the episodes that begin with the turns up to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]


def step_rewards(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """By trajectory (`<input>/<id>`) and number of its turns; empty where none was gone on from.
    `rows` have rewards."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "origin" in row:
            origin = row["origin"]
            source = f"{origin['input']}/{origin['id']}"
            found[source][origin["turns"]].append(row["reward"])
    return {
        source: {
            str(turns): {"reward": fmean(rewards), "attempts": len(rewards)}
            for turns, rewards in sorted(steps.items())
        }
        for source, steps in found.items()
    }
