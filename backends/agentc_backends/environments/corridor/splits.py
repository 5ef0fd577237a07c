"""The corridor's tasks: every split has as many, named by split and number.

They are alike but for their chance (`rules.goes_on`), so splits share no task and no episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class CorridorTasks:
    """Task ids by split, in order, and all of them."""

    splits: Mapping[str, tuple[str, ...]]
    known: frozenset[str]


@lru_cache(maxsize=16)
def load_tasks(count: int) -> CorridorTasks:
    """So many tasks for each split, made once: a server opens one environment for each session.
    A task is the same one whatever the count."""
    splits = {name: tuple(f"{name}-{n}" for n in range(count)) for name in SPLITS}
    return CorridorTasks(splits, frozenset(task for tasks in splits.values() for task in tasks))
