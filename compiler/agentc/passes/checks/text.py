"""Small pieces of the messages of rules."""

from __future__ import annotations


def multiples_near(number: int, step: int) -> list[int]:
    """The nearest multiples of `step` below and above, those above 0."""
    below = number // step * step
    return [found for found in (below, below + step) if found > 0]


def divisors_near(number: int, wanted: int) -> list[int]:
    """The nearest divisors of `number` at or below, and above, `wanted`."""
    found = [d for d in range(1, min(number, 4096) + 1) if number % d == 0]
    below = [d for d in found if d <= wanted][-1:]
    above = [d for d in found if d > wanted][:1]
    return below + above


def either(values: list[int]) -> str:
    """ "8 or 12"."""
    return " or ".join(str(value) for value in values)
