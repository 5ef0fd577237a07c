"""Keeps the best trajectories of each task, for trainers and mixtures alike (rejection sampling),
or the best of all (filtered behaviour cloning)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

_ROUNDING = 1e-9
"""0.29 of 100 is 28.999999999999996 in floating point, and meant to be 29."""
RowType = TypeVar("RowType", bound=Mapping[str, Any])


def best_of_tasks(rows: Sequence[RowType], best_per_task: int) -> list[RowType]:
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


def best_of_all(rows: Sequence[RowType], share: float) -> list[RowType]:
    """That share of the rows that have a reward, rounded down, with the largest ones, in the order
    in which all of them stood; the earlier one wins a tie (offline filtered BC of ArCHer, as
    released). None where the share comes to less than one."""
    places = [place for place, row in enumerate(rows) if row.get("reward") is not None]
    number = int(share * len(places) + _ROUNDING)
    ordered = sorted(places, key=lambda at: _rank(rows[at]), reverse=True)
    kept = set(ordered[:number])
    return [row for place, row in enumerate(rows) if place in kept]


def _rank(row: Mapping[str, Any]) -> tuple[bool, float]:
    reward = row.get("reward")
    return (False, 0.0) if reward is None else (True, reward)
