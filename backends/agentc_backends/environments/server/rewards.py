"""How the rewards of steps make that of an episode, by an environment's `reward_kind`.

Of those who play in their own process: `exported_world.py`, `environments/gym`. Rollouts, which
have invalid replies to account for, keep theirs by the same rule (`agents/common/episode.py`).
"""

from __future__ import annotations


def floor_of(reward_range: tuple[float, float]) -> float:
    """The reward of an episode without a step: 0, or what of the range is nearest to it."""
    low, high = reward_range
    return min(max(0.0, low), high)


def reward_after(kind: str, before: float | None, reward: float) -> float:
    """The episode's reward after a step that earned `reward`; `before` is what it was, None where
    there was no step yet."""
    if before is None:
        return reward
    match kind:
        case "sum":
            return before + reward
        case "max":
            return max(before, reward)
        case _:
            return reward
