"""What episodes are worth: their returns, and which of them are imitated. No tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def to_go(rewards: Sequence[float], discount: float) -> list[float]:
    """The discounted return from each step on, counted from the end, so that no power of the
    discount is formed."""
    found: list[float] = []
    later = 0.0
    for reward in reversed(rewards):
        later = reward + discount * later
        found.append(later)
    return found[::-1]


def best_share(returns: Sequence[float], share: float) -> tuple[float, list[int]]:
    """The return that is reached by the best `share` of episodes, between two of them by a line,
    and the numbers of those that reach it: all, where all are alike (online filtered BC, as
    released). Raises ValueError for no episodes."""
    if not returns:
        raise ValueError("no episodes to choose from")
    ordered = sorted(returns)
    place = (1 - share) * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    least = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return least, [number for number, one in enumerate(returns) if one >= least]


def unfiltered(curve: Iterable[Mapping[str, Any]], share: float) -> str | None:
    """What to say of a run of filtered BC whose filter let most through: episodes that are as good
    as the worst of the best are imitated too, so that where few reach anything all of them are.
    `curve` are the run's rows; None where at most half of the iterations were so."""
    steps = [row["actor"] for row in curve if "kept" in row.get("actor", {})]
    phases = [one for one in steps if share * one["kept"] >= 1]  # of fewer, one is too many
    crowded = [one for one in phases if one["imitated"] > 2 * share * one["kept"]]
    if 2 * len(crowded) <= len(phases):
        return None
    last = crowded[-1]
    return (
        f"in {len(crowded)} of {len(phases)} iterations more than twice the best "
        f"{100 * share:g}% of episodes were imitated, {last['imitated']:.0f} of "
        f"{last['kept']:.0f} in the last of them: so many have a return of at least "
        f"{last['cutoff']:g}. Set `keep_share` below the share of episodes that reach more"
    )


def group_advantages(returns: Sequence[float], divide: bool) -> list[float]:
    """Of several episodes of one task: what each is better than their mean, in standard deviations
    of the sample where `divide` says so (GRPO); 0 for all where they are alike."""
    mean = sum(returns) / len(returns)
    better = [one - mean for one in returns]
    if not divide:
        return better
    variance = sum(one * one for one in better) / max(len(returns) - 1, 1)
    return [one / variance**0.5 if variance > 0 else 0.0 for one in better]
