"""Quantity: a positive number that is known up to a factor, as a log-normal distribution.

Costs multiply (rows x tokens x seconds), and errors of estimates are factors: a log-normal has
both, with two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

Z10 = 1.2815515655446004
"""Distance of the 10th and the 90th percentile of a normal distribution from its mean, in standard
deviations."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """`median` in whatever unit; `spread` is the standard deviation of the natural logarithm (0:
    known exactly, 0.69: about a factor of two)."""

    median: float
    spread: float = 0.0

    @classmethod
    def between(cls, median: float, factor: float) -> Quantity:
        """The quantity whose 90th percentile is `factor` times its median."""
        return cls(median, math.log(factor) / Z10)

    @property
    def low(self) -> float:
        """10th percentile."""
        return self.median * math.exp(-Z10 * self.spread)

    @property
    def high(self) -> float:
        """90th percentile."""
        return self.median * math.exp(Z10 * self.spread)

    def times(self, other: Quantity | float) -> Quantity:
        """The product with a number, or with an independent quantity."""
        if isinstance(other, Quantity):
            return Quantity(self.median * other.median, math.hypot(self.spread, other.spread))
        return Quantity(self.median * other, self.spread)

    def widened(self, spread: float) -> Quantity:
        """The same with an independent error more."""
        return Quantity(self.median, math.hypot(self.spread, spread))


ZERO = Quantity(0.0)


def total(parts: Iterable[Quantity]) -> Quantity:
    """The sum of independent parts, to first order: medians add, and each part's spread counts by
    its share."""
    parts = [part for part in parts if part.median > 0]
    median = sum(part.median for part in parts)
    if not median:
        return ZERO
    return Quantity(median, math.hypot(*(part.spread * part.median / median for part in parts)))


def sum_in_step(parts: Iterable[Quantity]) -> Quantity:
    """The sum of parts whose errors go together (the same guess enters all of them)."""
    parts = [part for part in parts if part.median > 0]
    median = sum(part.median for part in parts)
    if not median:
        return ZERO
    return Quantity(median, sum(part.spread * part.median for part in parts) / median)
