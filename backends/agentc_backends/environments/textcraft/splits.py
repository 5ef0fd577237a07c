"""Divides the goals into train, validation and test, disjoint by goal.

Upstream has no splits. A goal's split depends only on its name and on the goals of its depth,
never on options of the environment, so that narrowing the tasks moves none of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from agentc_backends.environments.textcraft.recipes import RecipeBook

SPLITS = ("train", "validation", "test")
_TRAIN_PERCENT = 70
_VALIDATION_PERCENT = 10


def split_goals(book: RecipeBook) -> dict[str, tuple[str, ...]]:
    """About 70/10/20 of the goals at every crafting depth, each split sorted."""
    parts: dict[str, list[str]] = {name: [] for name in SPLITS}
    for depth in sorted({book.depths[goal] for goal in book.goals}):
        goals = _hash_order(goal for goal in book.goals if book.depths[goal] == depth)
        first = (len(goals) * _TRAIN_PERCENT + 50) // 100
        second = (len(goals) * (_TRAIN_PERCENT + _VALIDATION_PERCENT) + 50) // 100
        parts["train"] += goals[:first]
        parts["validation"] += goals[first:second]
        parts["test"] += goals[second:]
    return {name: tuple(sorted(goals)) for name, goals in parts.items()}


def _hash_order(goals: Iterable[str]) -> list[str]:
    return sorted(goals, key=lambda goal: hashlib.sha256(f"split/1/{goal}".encode()).digest())
