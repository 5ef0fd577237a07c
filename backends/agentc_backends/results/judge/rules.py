"""What the rules of verdicts are set by, and the words for verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

from agentc_backends.statistics.student import t_quantile

Claim: TypeAlias = Mapping[str, Any]

REPRODUCED = "reproduced"
WITHIN_NOISE = "within noise"
NOT_REPRODUCED = "not reproduced"
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class VerdictRules:
    """`confidence` of the intervals; `power` with which a detectable difference is noticed."""

    confidence: float
    power: float

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
