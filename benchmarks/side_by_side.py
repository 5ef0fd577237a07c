"""The same walks played by an upstream engine and by ours, in turns, and through our server.

Neighbours: `textcraft.py`, `webshop.py`, which say what a walk is and how each side plays it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Walk = tuple[Any, Sequence[str]]
"""A task, as both sides' `reset` take it, and the actions."""
Player = tuple[Callable[[Any], Any], Callable[[str], Any]]
"""Reset and step."""


def play(player: Player, walks: Sequence[Walk]) -> tuple[float, float]:
    """Steps a second, and milliseconds of a reset."""
    reset, step = player
    steps, resetting, stepping = 0, 0.0, 0.0
    for task, actions in walks:
        start = time.perf_counter()
        reset(task)
        began = time.perf_counter()
        for action in actions:
            step(action)
        stepping += time.perf_counter() - began
        resetting += began - start
        steps += len(actions)
    return steps / stepping, 1000 * resetting / len(walks)


def print_table(players: Mapping[str, Player], walks: Sequence[Walk], turns: int) -> None:
    """Medians over the turns; the first player is the one that the others are held against."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in players}
    for _ in range(turns):
        for name, player in players.items():
            found[name].append(play(player, walks))
    base = statistics.median(rate for rate, _ in next(iter(found.values())))
    steps = sum(len(actions) for _, actions in walks)
    print(f"load average {os.getloadavg()[0]:.1f}; medians of {turns} turns of {len(walks)} "
          f"episodes, {steps} steps\n")  # fmt: skip
    print("| | steps/s | times the first | reset |\n|---|---|---|---|")
    for name, measured in found.items():
        rate = statistics.median(each for each, _ in measured)
        reset_ms = statistics.median(each for _, each in measured)
        print(f"| {name} | {rate:,.0f} | {rate / base:.1f} | {reset_ms:.2f} ms |")
