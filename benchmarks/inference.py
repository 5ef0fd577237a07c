"""`python -m benchmarks.inference [--runs N]`: how often intervals hold the truth and tests reject.

Two policies are drawn on the same tasks again and again, with a known difference. Printed as the
table of docs/design/inference.md: what the tables, claims and sweeps of agentc say, beside
Student's t and sign flips alone; `warns` is how often the output says that few tasks moved, or what
the interval were if tasks that were not seen could move as far as the range lets them; `of misses`
is that of the samples whose interval misses the true difference.
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

from agentc_backends.statistics.intervals import t_quantile
from agentc_backends.statistics.sample import (
    MANY,
    Sample,
    depends_on_seen_range,
    sample,
    sign_flips,
)
from agentc_backends.statistics.scores import pool

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
    "none: rarer large, common smaller": {-1: 0.01, 0.05: 0.2},
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
    "graded, small gains and rarer large": {1: 0.02, 0.1: 0.3},
    "graded, small gains": {0.1: 0.3},
    "graded, dense and small": {0.1: 0.25, 0.25: 0.15, -0.1: 0.15, -0.25: 0.1},
}  # fmt: skip
TASKS = (5, 10, 20, 51, 100, 200, 500)


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
    yield (
        "| differences | tasks | covers | Student | rejects | Student | sign flips | warns | "
        "of misses |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, moves in CASES.items():
        truth = sum(value * chance for value, chance in moves.items())
        for n in TASKS:
            shares = [0.0] * 7
            for values in _drawn(moves, n, runs):
                for at, said in enumerate(_said(values, truth)):
                    shares[at] += said / runs
            cells = [f"{share:.3f}" for share in shares]
            missed = 1 - shares[0]
            cells[6] = f"{shares[6] / missed:.2f}" if missed > 0.5 / runs else "-"
            yield " | ".join([f"| {name}", str(n), *cells]) + " |"


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
                    over = _paired(means, 1.5)
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
    """Ours holds the truth, Student's does; ours rejects none, Student's does, sign flips do; the
    output warns, and does so while it misses the truth."""
    one = _paired(values, 1.0)
    covers, warns = one.p_value(truth) >= 0.05, one.few or depends_on_seen_range(one, 0.95)
    return (
        covers,
        not _student_rejects(values, truth),
        one.p_value() < 0.05,
        _student_rejects(values, 0.0),
        _flips(values) < 0.05,
        warns,
        warns and not covers,
    )


def _paired(values: Sequence[float], width: float) -> Sample:
    reach = max(map(abs, values))
    return sample(values, (-width, width), paired=True, seen=(-reach, reach))


def _student_rejects(values: Sequence[float], mean: float) -> bool:
    n, middle = len(values), fmean(values)
    variance = math.fsum((value - middle) ** 2 for value in values) / (n - 1)
    if variance <= 1e-15:
        return abs(middle - mean) > 1e-12
    return abs(middle - mean) > t_quantile(0.975, n - 1) * math.sqrt(variance / n)


def _flips(values: Sequence[float]) -> float:
    """Counted out, or of many moved tasks by the normal approximation."""
    moved = [value for value in values if value]
    if 0 < len(moved) < MANY:
        return sign_flips(moved, len(values)).p_value(0.0)
    spread = math.sqrt(math.fsum(value**2 for value in moved))
    return 2 * (1 - NormalDist().cdf(abs(math.fsum(moved)) / spread)) if spread else 1.0


if __name__ == "__main__":
    sys.exit(main())
