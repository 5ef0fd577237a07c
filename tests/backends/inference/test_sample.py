"""The interval and p-value of a mean: one test, known cases, and what the numbers promise."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import pairwise, product
from math import comb, fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentc_backends.statistics.intervals import t_quantile, two_sided
from agentc_backends.statistics.sample import (
    FEW,
    MANY,
    Sample,
    SignFlips,
    depends_on_seen_range,
    restricted_variance,
    sample,
    sign_flips,
)
from agentc_backends.statistics.scores import holm

WHOLE = (-1.0, 1.0)
CONFIDENCES = (0.8, 0.9, 0.95, 0.99)


def differences(values: list[float], width: float = 1.0) -> Sample:
    largest = max(map(abs, values), default=0.0)
    return sample(values, (-width, width), paired=True, seen=(-largest, largest))


SCORES = st.one_of(
    st.sampled_from([-1.0, 0.0, 0.0, 0.0, 1.0]),
    st.sampled_from([-0.5, 0.0, 0.25, 1 / 3, 1.0]),
    st.floats(-1, 1, allow_nan=False),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    values=st.one_of(
        st.lists(SCORES, min_size=1, max_size=60),
        st.lists(st.sampled_from([-1.0, 0.0, 0.0, 1.0]), min_size=1, max_size=120),
        st.integers(1, 80).flatmap(lambda n: st.sampled_from([[0.0] * n, [1.0] * n, [0.3] * n])),
    ),
    confidence=st.sampled_from(CONFIDENCES),
)
def test_p_is_small_exactly_where_the_interval_leaves_zero_out(
    values: list[float], confidence: float
) -> None:
    one = differences(values)
    low, high = one.interval(confidence)
    assert (one.p_value() < 1 - confidence) == (not low <= 0 <= high)
    assert low <= one.mean <= high
    assert low < high, "an interval is no point"
    assert one.bounds[0] <= low <= high <= one.bounds[1]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(values=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0]), min_size=2, max_size=40))
def test_what_is_outside_of_the_interval_is_rejected(values: list[float]) -> None:
    one = differences(values)
    low, high = one.interval(0.95)
    for end, step in ((low, -1e-6), (high, 1e-6)):
        if one.bounds[0] < end + step < one.bounds[1]:
            assert one.p_value(end + step) < 0.05
        assert one.p_value(end - step) >= 0.05 - 1e-9


def test_four_tasks_that_moved_one_way() -> None:
    """Of 51: their signs agree by chance in one of eight cases, and the interval says so."""
    one = differences([1.0, 1.0, 1.0, 0.5] + [0.0] * 47)
    assert one.p_value() == pytest.approx(0.125)
    low, high = one.interval(0.95)
    assert low < 0 < high
    assert one.few


@pytest.mark.parametrize("n", [1, 3, 51, 500])
def test_nothing_that_varies_is_no_certainty(n: int) -> None:
    same = differences([0.0] * n)
    low, high = same.interval(0.95)
    assert -low == pytest.approx(high)
    assert high > 3 / (n + 3) * 0.9, "the rule of three"
    assert same.p_value() == 1
    none = sample([0.0] * n, (0.0, 1.0)).interval(0.95)
    assert none[0] == 0 < none[1]
    low, high = sample([0.5] * n, (0.0, 1.0), seen=(0.5, 0.5)).interval(0.95)
    assert low < 0.5 < high


def test_attempts_at_all_or_nothing_tasks_are_no_other_range() -> None:
    """A range that is declared wide does not widen what many tasks were seen to do."""
    draw = random.Random(1)
    values = [draw.choice([0.2, 0.4, 0.5, 0.7]) for _ in range(60)]
    near = sample(values, (0.0, 1.0), seen=(0.2, 0.7)).interval(0.95)
    far = sample(values, (-300.0, 300.0), seen=(0.2, 0.7)).interval(0.95)
    assert near == pytest.approx(far, abs=1e-6)


def test_no_scores_no_estimate() -> None:
    with pytest.raises(ValueError, match="no task"):
        sample([], (0.0, 1.0))


def test_holm_by_hand() -> None:
    assert holm([0.03, 0.01, 0.04]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


# Against published formulas and scipy.


@pytest.mark.parametrize(("better", "worse", "n"), [(10, 1, 51), (25, 9, 200), (0, 14, 60)])
def test_the_variance_of_paired_all_or_nothing_scores_is_tangos(
    better: int, worse: int, n: int
) -> None:
    """Tango 1998: the likelier share of tasks that got worse, given the difference."""
    for mean in (-0.3, -0.05, 0.02, 0.25):
        counts = [(v, c) for v, c in ((1.0, better), (-1.0, worse), (0.0, n - better - worse)) if c]
        a = 2 * n
        b = -better - worse + (2 * n - better + worse) * mean
        c = -worse * mean * (1 - mean)
        share = ((b * b - 4 * a * c) ** 0.5 - b) / (2 * a)
        tango = 2 * share + mean - mean**2
        assert restricted_variance(counts, mean, WHOLE) == pytest.approx(tango, rel=1e-6)


def test_students_distribution_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 2, 7, 50, 333, 1500):
        for share in (0.6, 0.9, 0.975, 0.9995):
            expected = stats.t.ppf(share, freedom)
            assert t_quantile(share, freedom) == pytest.approx(expected, rel=1e-6)
            assert two_sided(expected, freedom) == pytest.approx(2 * (1 - share), abs=1e-9)


@pytest.mark.parametrize(("good", "n"), [(0, 51), (3, 20), (15, 51), (199, 200), (5, 5)])
def test_the_interval_of_a_share_is_wilsons(good: int, n: int) -> None:
    """scipy's has the normal quantile; at the confidence where that is Student's, they are one."""
    stats = pytest.importorskip("scipy.stats")
    level = 1 - 2 * stats.norm.sf(t_quantile(0.975, n - 1))
    wilson = stats.binomtest(good, n).proportion_ci(level, method="wilson")
    found = sample([1.0] * good + [0.0] * (n - good), (0.0, 1.0)).interval(0.95)
    assert found == pytest.approx((wilson.low, wilson.high), abs=1e-6)


def test_few_signs_are_counted_as_scipy_counts_them() -> None:
    numpy = pytest.importorskip("numpy")
    stats = pytest.importorskip("scipy.stats")
    draw = random.Random(2)
    for _ in range(6):
        moved = [draw.choice([-1, 1]) * draw.choice([0.25, 0.5, 1.0, draw.random()])
                 for _ in range(draw.randint(2, 9))]  # fmt: skip
        found = stats.permutation_test(
            (numpy.array(moved),), numpy.sum, permutation_type="samples", n_resamples=numpy.inf
        )
        assert sign_flips(moved, 60).p_value(0.0) == pytest.approx(found.pvalue)
    same = [1.0] * 7 + [-1.0] * 2
    assert sign_flips(same, 60).p_value(0.0) == pytest.approx(stats.binomtest(7, 9).pvalue)


def test_the_signs_interval_of_equal_differences_is_clopper_and_pearsons() -> None:
    stats = pytest.importorskip("scipy.stats")
    exact = stats.binomtest(7, 9).proportion_ci(0.95, method="exact")
    flips = sign_flips([1.0] * 7 + [-1.0] * 2, 9)
    for end in (exact.low, exact.high):
        assert flips.p_value(2 * end - 1) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("moved", [[1.0, 0.5, -0.25], [0.1, 0.2, 0.3, 0.4, 0.5], [3.0, 2.0, -1.0]])
def test_signs_by_brute_force(moved: list[float]) -> None:
    sums = [fsum(s * d for s, d in zip(signs, map(abs, moved), strict=True))
            for signs in product((1, -1), repeat=len(moved))]  # fmt: skip
    reached = sum(abs(total) >= abs(fsum(moved)) - 1e-9 for total in sums)
    assert sign_flips(moved, 9).p_value(0.0) == pytest.approx(reached / len(sums))


@pytest.mark.parametrize("moved", [13, 20, 35])
def test_more_signs_are_counted_as_scipy_counts_them(moved: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    worse = moved // 4
    for size in (1.0, 0.3):
        values = [size] * (moved - worse) + [-size] * worse
        expected = stats.binomtest(worse, moved).pvalue
        assert sign_flips(values, 60).p_value(0.0) == pytest.approx(expected)


def test_more_signs_of_any_size_by_brute_force() -> None:
    """Sizes are rounded, and never in favour of a difference."""
    draw = random.Random(7)
    values = [draw.uniform(-0.4, 1) for _ in range(15)]
    sizes = [abs(value) for value in values]
    at = sum(values)
    sums = [fsum(s * d for s, d in zip(signs, sizes, strict=True))
            for signs in product((1, -1), repeat=len(sizes))]  # fmt: skip
    exact = 2 * min(sum(t >= at - 1e-9 for t in sums), sum(t <= at + 1e-9 for t in sums))
    found = sign_flips(values, 60)
    assert isinstance(found, SignFlips)
    assert exact / len(sums) <= found.p_value(0.0) <= 1.2 * exact / len(sums)


def test_for_many_tasks_it_is_the_t_test() -> None:
    stats = pytest.importorskip("scipy.stats")
    draw = random.Random(3)
    values = [max(-1.0, min(1.0, draw.gauss(0.03, 0.3))) for _ in range(400)]
    expected = stats.ttest_1samp(values, 0)
    one = differences(values)
    assert one.p_value() == pytest.approx(expected.pvalue, rel=0.05)
    assert one.interval(0.95) == pytest.approx(tuple(expected.confidence_interval()), abs=2e-3)


# What they promise. benchmarks/inference.py prints the large table of docs/design/inference.md.


@cache
def kept(better: int, worse: int, n: int, mean: float) -> bool:
    values = [1.0] * better + [-1.0] * worse + [0.0] * (n - better - worse)
    return differences(values).p_value(mean) >= 0.05


@pytest.mark.parametrize("n", [5, 20, 51])
@pytest.mark.parametrize(
    ("up", "down"), [(0.04, 0.04), (0.08, 0.0), (0.1, 0.03), (0.2, 0.1), (0.4, 0.4), (0.9, 0.0)]
)
def test_coverage_and_size_of_paired_success(up: float, down: float, n: int) -> None:
    """Not simulated: over all outcomes, by their probabilities."""
    covered = rejected = 0.0
    for better in range(n + 1):
        for worse in range(n + 1 - better):
            ways = comb(n, better) * comb(n - better, worse)
            chance = ways * up**better * down**worse * (1 - up - down) ** (n - better - worse)
            if chance > 1e-6:
                covered += chance * kept(better, worse, n, up - down)
                rejected += chance * (not kept(better, worse, n, 0.0))
    assert covered >= 0.94
    if up == down:
        assert rejected <= 0.06


def shopping(draw: random.Random) -> float:
    """Rewards as WebShop gives them: a fifth nothing, a third all, the rest in between."""
    drawn = draw.random()
    if drawn < 0.2:
        return 0.0
    return 1.0 if drawn < 0.53 else draw.choice([0.25, 1 / 3, 0.5, 2 / 3, 0.75])


SHOPPING_MEAN = 0.33 + 0.47 * 0.5


@pytest.mark.parametrize("n", [15, 60])
@pytest.mark.parametrize(
    ("score", "mean"),
    [
        (lambda draw: float(draw.random() < 0.5), 0.5),
        (lambda draw: float(draw.random() < 0.9), 0.9),
        (shopping, SHOPPING_MEAN),
    ],
    ids=["half", "nine_tenths", "shopping"],
)
def test_means_are_covered(score: Callable[[random.Random], float], mean: float, n: int) -> None:
    draw, runs, covered = random.Random(n), 1000, 0
    for _ in range(runs):
        values = [score(draw) for _ in range(n)]
        one = sample(values, (0.0, 1.0), seen=(min(values), max(values)))
        covered += one.p_value(mean) >= 0.05
    assert 0.93 <= covered / runs <= 0.985


def test_the_exact_test_is_for_few_tasks() -> None:
    assert differences([1.0] * FEW + [0.0] * 80).few
    assert not differences([1.0] * (FEW + 1) + [0.0] * 80).few


@pytest.mark.parametrize("gain", [0.1, 0.25, 1.0])
def test_p_goes_down_without_a_step_as_more_tasks_gain(gain: float) -> None:
    """From few to many: one task more never turns a p-value that says nothing into one that says
    much."""
    chances = [
        differences([gain] * moved + [0.0] * (80 - moved)).p_value() for moved in range(6, 60)
    ]
    for before, after in pairwise(chances):
        assert after < before
        assert after > before / 2 or before < 0.04


@cache
def small_gains(large: int, small: int, n: int, truth: float) -> tuple[bool, bool]:
    """Whether the truth is covered, and whether the output warns."""
    one = differences([1.0] * large + [0.1] * small + [0.0] * (n - large - small))
    return one.p_value(truth) >= 0.05, one.few or depends_on_seen_range(one, 0.95)


@pytest.mark.parametrize(
    ("rate", "n", "covered"),
    [(0.05, 51, 0.94), (0.05, 200, 0.94), (0.02, 51, 0.94), (0.02, 100, 0)],
)
def test_small_gains_and_rare_large_ones_are_covered_or_warned_of(
    rate: float, n: int, covered: float
) -> None:
    """Over all outcomes, by their probabilities: what the large ones add is in the interval though
    none was among the tasks, or the output says that it would not be."""
    held = missed = silent = 0.0
    for large in range(n + 1):
        for small in range(n + 1 - large):
            ways = comb(n, large) * comb(n - large, small)
            chance = ways * rate**large * 0.3**small * (0.7 - rate) ** (n - large - small)
            if chance > 1e-5:
                covers, warns = small_gains(large, small, n, rate + 0.03)
                held += chance * covers
                missed += chance * (not covers)
                silent += chance * (not covers and not warns)
    assert held >= covered
    assert silent <= 0.06, "what is missed without a warning is what an interval may miss"
    assert covered or missed > 0.1, "the case is one that needs the warning"


def test_no_warning_where_the_range_was_seen() -> None:
    whole = [1.0] * 20 + [-1.0] * 12 + [0.0] * 19
    assert not depends_on_seen_range(differences(whole), 0.95)
    mixed = [1.0, -1.0] + [0.1, 0.25, -0.1] * 20 + [0.0] * 40
    assert not depends_on_seen_range(differences(mixed), 0.95)
    dense = [0.4, -0.3, 0.2, -0.5] * 100
    assert not depends_on_seen_range(differences(dense), 0.95), (
        "many that vary tell what the mean can be"
    )


def test_with_the_range_open_it_is_the_test_of_few() -> None:
    values = [0.1] * (MANY + 4) + [0.0] * 20
    one = differences(values)
    assert one.p_value() < 1e-6
    assert depends_on_seen_range(one, 0.95)
    other = one.anywhere()
    assert other.p_value() > 0.01
    assert other.interval(0.95)[0] < one.interval(0.95)[0]
