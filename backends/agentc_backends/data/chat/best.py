"""Keeps the best trajectories of each task, for trainers and mixtures alike (rejection sampling).

Neighbour: `rows.py`, which makes token rows of what is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

Kept = TypeVar("Kept", bound=Mapping[str, Any])


def best_of_tasks(rows: Sequence[Kept], best_per_task: int) -> list[Kept]:
    """At most so many rows of a task, those with the largest rewards, in the order in which all of
    them stood. The earlier one wins a tie; a row without a reward comes after all that have one."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row.get("task_id") or row["id"]].append(place)
    kept: set[int] = set()
    for found in places.values():
        # Sorting is stable, and reversed sorting keeps equal rewards in their order as well.
        kept.update(sorted(found, key=lambda at: _rank(rows[at]), reverse=True)[:best_per_task])
    return [row for place, row in enumerate(rows) if place in kept]


def _rank(row: Mapping[str, Any]) -> tuple[bool, float]:
    reward = row.get("reward")
    return (False, 0.0) if reward is None else (True, reward)
