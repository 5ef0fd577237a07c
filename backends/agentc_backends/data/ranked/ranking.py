"""Draws pairs of candidates of one turn by their scores (SWEET-RL, arXiv 2503.15478, section 4.2;
the released script where the paper leaves it open).

Pure: scores in, places of candidates out. Equal scores go by their places.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from itertools import islice, product

PUBLISHED_SEED = 42
"""What the released script seeds its one generator with, before the first turn."""


def ascending(scores: Sequence[float]) -> list[int]:
    """Places of the candidates, the worst first."""
    return sorted(range(len(scores)), key=lambda place: (scores[place], place))


def halves(order: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """The lower and the upper half of a ranking; of an odd number the middle is in neither."""
    size = len(order) // 2
    return order[:size], order[len(order) - size :]


def drawn(
    order: Sequence[int],
    pairs: int,
    *,
    replacement: bool,
    generator: random.Random,
    alike: Callable[[int, int], bool] | None = None,
) -> list[tuple[int, int]]:
    """So many (chosen, rejected): each chosen from the upper half, each rejected from the lower.
    Without replacement no two are the same, and there are no more than can be told apart. With
    `alike` they are drawn from the pairs of which it holds."""
    lower, upper = halves(order)
    if not lower:
        return []
    if alike is not None or not replacement:
        every = [(high, low) for low, high in product(lower, upper)]
        fit = [pair for pair in every if alike is None or alike(*pair)]
        if not replacement:
            return generator.sample(fit, min(pairs, len(fit)))
        return generator.choices(fit, k=pairs) if fit else []
    found: list[tuple[int, int]] = []
    for _ in range(pairs):
        # The lower one first, as published.
        low = generator.choice(lower)
        found.append((generator.choice(upper), low))
    return found


def best_and_worst(
    order: Sequence[int], alike: Callable[[int, int], bool] | None = None
) -> list[tuple[int, int]]:
    """The one pair of the best and the worst; with `alike`, the worst of those that are like the
    best, if any is."""
    if not order:
        return []
    best, others = order[-1], order[:-1]
    fit = (place for place in others if alike is None or alike(best, place))
    return [(best, worst) for worst in islice(fit, 1)]


def shuffled_scores(seed: int, turn: str, count: int) -> list[float]:
    """Scores that say nothing: each of 0, 1/count, 2/count ... once, in an order drawn by the seed
    and the turn."""
    scores = [place / count for place in range(count)]
    turn_generator("shuffled", seed, turn).shuffle(scores)
    return scores


def turn_generator(purpose: str, seed: int, turn: str) -> random.Random:
    """A generator of a turn's own, so that no turn's draws depend on which others there are."""
    return random.Random(hashlib.sha256(f"{purpose}/1/{seed}/{turn}".encode()).digest())
