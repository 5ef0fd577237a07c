"""Plays TextCraft from its texts alone, as an agent would: fetch what no command makes, and craft
the rest bottom-up. Good enough for goals whose ingredients are named exactly."""

from __future__ import annotations

import re

_COMMAND = re.compile(r"craft (\d+) (.+) using (.+)")
_DEEPEST = 6


def plan(task: str) -> list[str]:
    """Actions for a task's first text; empty where it is beyond this solver."""
    goal = task.rpartition("Goal: craft ")[2].rstrip(".")
    recipes: dict[str, tuple[int, list[tuple[int, str]]]] = {}
    for made, name, parts in _COMMAND.findall(task):
        needed = [part.split(" ", 1) for part in parts.split(", ")]
        recipes.setdefault(name, (int(made), [(int(count), item) for count, item in needed]))
    actions: list[str] = []

    def obtain(name: str, count: int, depth: int) -> bool:
        if depth > _DEEPEST:
            return False
        if name not in recipes:
            actions.append(f"get {count} {name}")
            return True
        made, parts = recipes[name]
        for _ in range(-(-count // made)):
            if not all(obtain(item, needed, depth + 1) for needed, item in parts):
                return False
            listed = ", ".join(f"{needed} {item}" for needed, item in parts)
            actions.append(f"craft {made} {name} using {listed}")
        return True

    return actions if goal in recipes and obtain(goal, 1, 0) else []
