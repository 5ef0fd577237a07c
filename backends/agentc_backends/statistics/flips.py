"""The exact test of few differences: every way in which their signs could have fallen.

Fisher's randomisation test for pairs. Signs that favour one side with another chance than one half
give an interval that inverts the same test; with equal differences it is that of Clopper and
Pearson for the share of tasks that got better. With more than a few differences their sizes are
rounded, so that the patterns can be counted without being gone through.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LISTED = 12
"""Up to so many differences, every sum is kept as it is."""
_LATTICE = 840
"""Beyond, sizes are so many parts of the largest: halves, thirds, up to eighths are still exact."""
_SLOT = 64
"""Bits for one count of sign patterns: 63 differences have less than 2**_SLOT of them."""


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
    """Of the differences other than zero among those of `n` tasks; from one to 63 of them."""
    above, below = _listed(moved) if len(moved) <= _LISTED else _on_a_lattice(moved)
    return SignFlips(tuple(above), tuple(below), sum(map(abs, moved)) / n)


def _listed(moved: Sequence[float]) -> tuple[list[int], list[int]]:
    """How many patterns reach what was seen, from above and from below, by how many are better."""
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
    return above, below


def _on_a_lattice(moved: Sequence[float]) -> tuple[list[int], list[int]]:
    """The same of more differences, sums within the rounding counted as reached. The patterns with
    k better are one number, whose digit at s, in base 2**_SLOT, counts those whose sum is s."""
    largest = max(abs(each) for each in moved)
    parts = [_LATTICE * abs(each) / largest for each in moved]
    sizes = [round(part) for part in parts]
    # Each rounded size may be off by half a part.
    slack = sum(abs(p - s) > 1e-6 for p, s in zip(parts, sizes, strict=True)) // 2
    if not slack:
        common = math.gcd(*sizes)
        sizes = [size // common for size in sizes]
    patterns = [1] + [0] * len(moved)
    for done, size in enumerate(sizes, start=1):
        for better in range(done, 0, -1):
            patterns[better] += patterns[better - 1] << (_SLOT * size)
    seen = sum(size for size, each in zip(sizes, moved, strict=True) if each > 0)
    first, last = max(0, seen - slack), seen + slack
    digit = (1 << _SLOT) - 1
    # A number is its sum of digits modulo its base less one.
    above = [number >> (_SLOT * first) for number in patterns]
    below = [number & ((1 << (_SLOT * (last + 1))) - 1) for number in patterns]
    return [number % digit for number in above], [number % digit for number in below]


def _share(patterns: Sequence[int], chance: float) -> float:
    """The probability of the patterns when each sign is a plus with `chance`."""
    most = len(patterns) - 1
    return sum(
        count * chance**better * (1 - chance) ** (most - better)
        for better, count in enumerate(patterns)
        if count
    )
