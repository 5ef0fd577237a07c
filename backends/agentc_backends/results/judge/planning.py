"""What a verdict could have been: how often a perfect reproduction is called one, and what
tolerance that takes. By the normal approximation, for the same policy in the paper and here."""

from __future__ import annotations

import math
from statistics import NormalDist

from agentc_backends.results.judge.rules import VerdictRules
from agentc_backends.statistics.pooled import Pooled
from agentc_backends.statistics.printed import Printed
from agentc_backends.statistics.scores import Estimate
from agentc_backends.statistics.student import t_quantile


def chance_to_reproduce(
    ours: Estimate, paper: Printed | Pooled, half: float, rules: VerdictRules
) -> float:
    """The probability that our interval falls inside a band of `half` on each side of the paper's
    number, if both measure the same policy: the paper's number is off by its noise as well."""
    room = half - _reach(ours, rules)
    if room <= 0:
        return 0.0
    return 2 * NormalDist().cdf(room / _noise(ours, paper)) - 1


def tolerance_needed(ours: Estimate, paper: Printed | Pooled, rules: VerdictRules) -> float:
    """The tolerance with which that probability is the power."""
    return _reach(ours, rules) + NormalDist().inv_cdf(0.5 + rules.power / 2) * _noise(ours, paper)


def _reach(ours: Estimate, rules: VerdictRules) -> float:
    """Half of the interval that must lie inside the band."""
    return t_quantile(rules.confidence, ours.freedom) * ours.standard_error()


def _noise(ours: Estimate, paper: Printed | Pooled) -> float:
    """The standard error of the difference between the two; never zero."""
    return max(math.hypot(ours.standard_error(), paper.standard_error()), 1e-12)
