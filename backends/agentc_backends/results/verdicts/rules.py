"""What sets the rules of verdicts, the words for verdicts, and what a verdict could have been: how
often a perfect reproduction is called one, and what tolerance that takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

from agentc.kinds.evaluation import VerdictSettings
from agentc_backends.statistics.intervals import ReportedMean, t_quantile
from agentc_backends.statistics.scores import Estimate, Pooled

Claim: TypeAlias = Mapping[str, Any]

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
"""Verdicts on a claim with a paper's value."""
SUPPORTED, CONTRADICTED = "supported", "contradicted"
"""Verdicts on any other claim, a hypothesis."""
INCONCLUSIVE = "inconclusive"
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRules(VerdictSettings):
    """The settings, and what follows from them."""

    @property
    def one_sided(self) -> float:
        """The confidence whose two-sided interval errs on each side as often as the other one errs
        in all: what showing that a score lies inside a band takes (Schuirmann 1987)."""
        return 2 * self.confidence - 1

    def reach(self, freedom: int) -> float:
        """Standard errors from no difference to one that is noticed with the power, where these
        are known with so many degrees of freedom: a few runs have to be far apart."""
        return t_quantile(0.5 + self.confidence / 2, freedom) + t_quantile(self.power, freedom)

    def reach_inside(self) -> float:
        """Standard errors that half a band must measure, so that a score in its middle is shown to
        be inside with the power."""
        normal = NormalDist()
        return normal.inv_cdf(self.confidence) + normal.inv_cdf(0.5 + self.power / 2)


# By the normal approximation, for the same policy in the paper and here.


def chance_to_reproduce(
    ours: Estimate, paper: ReportedMean | Pooled, half: float, rules: VerdictRules
) -> float:
    """The probability that our interval falls inside a band of `half` on each side of the paper's
    number, if both measure the same policy: the paper's number is off by its noise as well."""
    room = half - _reach(ours, rules)
    if room <= 0:
        return 0.0
    return 2 * NormalDist().cdf(room / _noise(ours, paper)) - 1


def tolerance_needed(ours: Estimate, paper: ReportedMean | Pooled, rules: VerdictRules) -> float:
    """The tolerance with which that probability is the power."""
    return _reach(ours, rules) + NormalDist().inv_cdf(0.5 + rules.power / 2) * _noise(ours, paper)


def _reach(ours: Estimate, rules: VerdictRules) -> float:
    """Half of the interval that must lie inside the band."""
    return t_quantile(rules.confidence, ours.freedom) * ours.standard_error()


def _noise(ours: Estimate, paper: ReportedMean | Pooled) -> float:
    """The standard error of the difference between the two; never zero."""
    return max(math.hypot(ours.standard_error(), paper.standard_error()), 1e-12)
