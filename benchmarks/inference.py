"""`python -m benchmarks.inference [--runs N]`: how often intervals hold the truth and tests reject.

Two policies are drawn on the same tasks again and again, with a known difference. Printed as the
table of docs/design/inference.md: what the tables, claims and sweeps of agentc say, beside
Student's t and sign flips alone; `few` is how often the exact test was needed.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from statistics import NormalDist, fmean

from agentc_backends.inference.pooled import pool
from agentc_backends.inference.sample import Sample, sample
from agentc_backends.inference.student import t_quantile

Moves = Mapping[float, float]
"""Difference -> its probability; with what is missing from one, a task does not move."""

CASES: Mapping[str, Moves] = {
    "none: .01 up, .01 down": {1: 0.01, -1: 0.01},
    "none: .04 up, .04 down": {1: 0.04, -1: 0.04},
    "none: .3 up, .3 down": {1: 0.3, -1: 0.3},
    "none: two attempts": {1: 0.03, 0.5: 0.05, -0.5: 0.05, -1: 0.03},
    "none: two attempts, dense": {1: 0.1, 0.5: 0.2, -0.5: 0.2, -1: 0.1},
    "none: graded": {0.25: 0.1, 0.5: 0.05, 1: 0.02, -0.25: 0.1, -0.5: 0.05, -1: 0.02},
    "none: rare large, common small": {1: 0.05, -0.25: 0.2},
    ".08 up, 0 down": {1: 0.08},
    ".10 up, .03 down": {1: 0.10, -1: 0.03},
    ".20 up, .10 down": {1: 0.20, -1: 0.10},
    ".5 up, .2 down": {1: 0.5, -1: 0.2},
    ".9 up, 0 down": {1: 0.9},
    "two attempts, sparse": {1: 0.04, 0.5: 0.05, -0.5: 0.01},
    "two attempts, dense": {1: 0.2, 0.5: 0.3, -0.5: 0.15, -1: 0.05},
    "graded, sparse": {0.25: 0.05, 0.5: 0.03, 1: 0.02},
    "graded, dense": {0.1: 0.1, 0.25: 0.1, 0.5: 0.08, 1: 0.06, -0.1: 0.08, -0.25: 0.06,
                      -0.5: 0.05, -1: 0.02},
    "graded, small gains and rare large": {1: 0.05, 0.1: 0.3},
}  # fmt: skip
TASKS = (5, 10, 20, 51, 200, 500)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the tables on standard output."""
    parser = argparse.ArgumentParser(prog="benchmarks.inference", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, metavar="N", help="of each case")
    options = parser.parse_args(arguments)
    for line in chain(paired_table(options.runs), [""], pooled_table(options.runs // 4)):
        print(line, flush=True)
    return 0


def paired_table(runs: int) -> Iterator[str]:
    """Coverage of the true difference, and how often none is rejected."""
    yield "| differences | tasks | covers | Student | rejects | Student | sign flips | few |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, moves in CASES.items():
        truth = sum(value * chance for value, chance in moves.items())
        for n in TASKS:
            shares = [0.0] * 6
            for values in _drawn(moves, n, runs):
                for at, said in enumerate(_said(values, truth)):
                    shares[at] += said / runs
            cells = [f"{share:.3f}" for share in shares]
            yield (
                f"| {name} | {n} | {cells[0]} | {cells[1]} | {cells[2]} | {cells[3]} | "
                f"{cells[4]} | {cells[5]} |"
            )


def pooled_table(runs: int) -> Iterator[str]:
    """Coverage of the mean over other seeds and tasks."""
    yield "| spread of seeds, tasks, rest | seeds | tasks | covers | two-way alone |"
    yield "|---|---|---|---|---|"
    for spread in ((0.08, 0.3, 0.25), (0.3, 0.1, 0.1), (0.0, 0.3, 0.25)):
        for seeds in (2, 3, 5):
            for n in (20, 51):
                draw, held, alone = random.Random(f"{spread}{seeds}{n}"), 0, 0
                for _ in range(runs):
                    tasks = [draw.gauss(0, spread[1]) for _ in range(n)]
                    table = [
                        [shift + task + draw.gauss(0, spread[2]) for task in tasks]
                        for shift in (draw.gauss(0, spread[0]) for _ in range(seeds))
                    ]
                    means = tuple(fmean(column) for column in zip(*table, strict=True))
                    reach = max(abs(value) for row in table for value in row)
                    over = sample(means, (-9.0, 9.0), paired=True, seen=(-reach, reach))
                    pooled = pool(table, over)
                    held += pooled.p_value() >= 0.05
                    quantile = t_quantile(0.975, pooled.freedom)
                    alone += abs(pooled.mean) <= quantile * pooled.standard_error()
                shown = ", ".join(f"{each:g}" for each in spread)
                yield f"| {shown} | {seeds} | {n} | {held / runs:.3f} | {alone / runs:.3f} |"


def _drawn(moves: Moves, n: int, runs: int) -> Iterator[tuple[float, ...]]:
    draw = random.Random(f"{sorted(moves.items())}{n}")
    values = [*moves, 0.0]
    chances = [*moves.values(), 1 - sum(moves.values())]
    for _ in range(runs):
        yield tuple(sorted(draw.choices(values, chances, k=n)))


@cache
def _said(values: tuple[float, ...], truth: float) -> tuple[bool, ...]:
    """Ours holds the truth, Student's does; ours rejects none, Student's does, sign flips do."""
    one = _paired(values)
    flips = one.p_value() if one.few else _many_flips(values)
    return (
        one.p_value(truth) >= 0.05,
        not _student_rejects(values, truth),
        one.p_value() < 0.05,
        _student_rejects(values, 0.0),
        flips < 0.05,
        one.few,
    )


def _paired(values: tuple[float, ...]) -> Sample:
    reach = max(map(abs, values))
    return sample(values, (-1.0, 1.0), paired=True, seen=(-reach, reach))


def _student_rejects(values: Sequence[float], mean: float) -> bool:
    n, middle = len(values), fmean(values)
    variance = math.fsum((value - middle) ** 2 for value in values) / (n - 1)
    if variance <= 1e-15:
        return abs(middle - mean) > 1e-12
    return abs(middle - mean) > t_quantile(0.975, n - 1) * math.sqrt(variance / n)


def _many_flips(values: Sequence[float]) -> float:
    """Of many moved tasks, by the normal approximation."""
    spread = math.sqrt(math.fsum(value**2 for value in values))
    return 2 * (1 - NormalDist().cdf(abs(math.fsum(values)) / spread)) if spread else 1.0


if __name__ == "__main__":
    sys.exit(main())
