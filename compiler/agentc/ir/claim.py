"""Claim: one statement of a paper about an evaluation, bound to the stages that test it.

Made by `agentc.front.resolve_claims` from the `claims:` section; tested by a `verdicts` stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.diagnostics.diagnostic import Origin
from agentc.kinds.field import Json

Relation: TypeAlias = Literal["value", "above", "below"]

Run: TypeAlias = tuple[str, str | None]
"""An evaluation, and the one that it is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The `metric` of `stage` (minus that of `difference_from`) is `value`, above it or below it.

    A claim with a `reach` is about how much the run of RL `stage` played until its return was that
    high, as a share of what `difference_from` played, where that is named (`ratio_to` in a spec).

    `value`, `tolerance` and `bounds` are in units of the metric itself, also where the paper
    prints points of a hundred (`percent`, which says how they are shown). `bounds` are the lowest
    and the highest score of one task; `difference_metric` is of `difference_from`, where that is
    another than `metric`. `n` is the paper's number of test tasks, `seeds` its number
    of training runs. `over` names swept params whose values are runs of one experiment; once the
    cells of the sweep are joined, `runs` are their stages, and `stage` and `difference_from` say
    what these have in common. `unmet` says which of its `needs` do not hold: such a claim is not
    judged.
    """

    name: str
    what: str
    stage: str
    metric: str
    relation: Relation
    value: float
    bounds: tuple[float, float]
    table: str | None = None
    tolerance: float | None = None
    n: int | None = None
    seeds: int | None = None
    difference_from: str | None = None
    difference_metric: str | None = None
    reach: float | None = None
    percent: bool = False
    gate: bool = False
    unmet: str | None = None
    over: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    origin: Origin

    @property
    def stages(self) -> tuple[str, ...]:
        """The evaluations that it is about."""
        runs = self.runs or ((self.stage, self.difference_from),)
        return tuple(dict.fromkeys(stage for run in runs for stage in run if stage is not None))

    def record(self) -> dict[str, Json]:
        """As the verdicts stage receives it: everything but the place in the spec. What few claims
        have is left out of the others, whose keys are older. What is counted has no bounds."""
        more: dict[str, Json] = {"runs": [list(run) for run in self.runs]} if self.runs else {}
        if self.difference_metric is not None:
            more["difference_metric"] = self.difference_metric
        if self.unmet is not None:
            more["unmet"] = self.unmet
        if self.reach is None:
            more["bounds"] = list(self.bounds)
        else:
            more["reach"] = self.reach
        return {
            **more,
            "name": self.name,
            "what": self.what,
            "table": self.table,
            "stage": self.stage,
            "difference_from": self.difference_from,
            "metric": self.metric,
            "relation": self.relation,
            "value": self.value,
            "tolerance": self.tolerance,
            "n": self.n,
            "seeds": self.seeds,
            "percent": self.percent,
            "gate": self.gate,
        }
