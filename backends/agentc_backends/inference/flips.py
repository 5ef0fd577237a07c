"""The exact test of few differences: every way in which their signs could have fallen.

Fisher's randomisation test for pairs. Signs that favour one side with another chance than one half
give an interval that inverts the same test; with equal differences it is that of Clopper and
Pearson for the share of tasks that got better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SignFlips:
    """Of the sign patterns with k tasks better, how many sum to at least (`above`) and to at most
    (`below`) what was seen. `size` is the sum of all magnitudes over the number of tasks: the mean
    difference if every moved task had got better."""

    above: tuple[int, ...]
    below: tuple[int, ...]
    size: float

    def p_value(self, mean: float) -> float:
        """Two-sided: of the hypothesis that the mean difference is `mean`, each task that moved
        being better with the one chance that gives it."""
        chance = (1 + mean / self.size) / 2
        if not 0 <= chance <= 1:
            return 0.0
        tails = (_share(self.above, chance), _share(self.below, chance))
        return min(1.0, 2 * min(tails))


def sign_flips(moved: Sequence[float], n: int) -> SignFlips:
    """Of the differences other than zero among those of `n` tasks; at least one."""
    largest = max(abs(each) for each in moved)
    sums: dict[tuple[float, int], int] = {(0.0, 0): 1}
    for each in moved:
        # Rounded, so that equal sums in another order meet; relative to the largest difference.
        size = abs(each) / largest
        after: dict[tuple[float, int], int] = {}
        for (total, better), patterns in sums.items():
            for place in ((round(total + size, 9), better + 1), (round(total - size, 9), better)):
                after[place] = after.get(place, 0) + patterns
        sums = after
    seen = sum(moved) / largest
    above, below = [0] * (len(moved) + 1), [0] * (len(moved) + 1)
    for (total, better), patterns in sums.items():
        if total >= seen - 1e-6:
            above[better] += patterns
        if total <= seen + 1e-6:
            below[better] += patterns
    return SignFlips(tuple(above), tuple(below), sum(map(abs, moved)) / n)


def _share(patterns: Sequence[int], chance: float) -> float:
    """The probability of the patterns when each sign is a plus with `chance`."""
    most = len(patterns) - 1
    return sum(
        count * chance**better * (1 - chance) ** (most - better)
        for better, count in enumerate(patterns)
        if count
    )
