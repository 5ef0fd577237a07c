"""budget: compares an estimate with the amounts under `budget:`, and says what weighs most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from agentc.cost.estimate import Estimate
from agentc.cost.summary import Band, Summary
from agentc.diagnostics.diagnostic import Diagnostic
from agentc.ir.module import Budget
from agentc.text import shown_count, shown_size, shown_time

_BIGGEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """One bounded amount, in the units that people read: the estimate's band, the limit, and how
    an amount of it is written."""

    key: str
    band: Band
    limit: float
    show: Callable[[float], str]
    of_job: Callable[[Estimate], float]


def budget_lines(budget: Budget, summary: Summary) -> list[str]:
    """One line for each bounded amount: `budget: 3.4 of 10 GPU-hours (p50)`."""
    lines = []
    for amount in _amounts(budget, summary):
        found = amount.band.at(budget.quantile)
        verdict = "over" if found > amount.limit else "within"
        lines.append(
            f"budget of {amount.show(amount.limit)}: {verdict}, at {amount.show(found)} "
            f"({budget.quantile})"
        )
    return lines


def over_budget(
    budget: Budget, summary: Summary, estimates: Mapping[str, Estimate]
) -> tuple[Diagnostic, ...]:
    """An error for each amount that the remaining work exceeds."""
    return tuple(
        _diagnostic(budget, amount, estimates.values())
        for amount in _amounts(budget, summary)
        if amount.band.at(budget.quantile) > amount.limit
    )


def _amounts(budget: Budget, summary: Summary) -> list[Amount]:
    known: dict[str, tuple[Band, float, Callable[[float], str], Callable[[Estimate], float]]] = {
        "wall_hours": (summary.wall, 3600, shown_time, lambda job: job.seconds.median),
        "gpu_hours": (summary.gpu_hours, 1, _gpu_hours, lambda job: job.gpu_hours.median),
        "tokens": (summary.tokens, 1, _tokens, lambda job: job.tokens.median),
        "disk_gb": (summary.disk, 1e9, shown_size, lambda job: job.disk.median),
    }
    return [
        Amount(key=key, band=known[key][0], limit=limit * known[key][1], show=known[key][2],
               of_job=known[key][3])
        for key, limit in budget.limits().items()
    ]  # fmt: skip


def _diagnostic(budget: Budget, amount: Amount, estimates: Iterable[Estimate]) -> Diagnostic:
    found = amount.show(amount.band.at(budget.quantile))
    jobs = {job.object: job for job in estimates if job.state == "run"}.values()
    heavy = sorted(jobs, key=amount.of_job, reverse=True)[:_BIGGEST]
    biggest = ", ".join(
        f"{job.id} {amount.show(amount.of_job(job))} ({job.basis})"
        for job in heavy
        if amount.of_job(job) > 0
    )
    band = f"{amount.show(amount.band.low)} to {amount.show(amount.band.high)}"
    return Diagnostic(
        code="AGC730",
        message=f"what is left to run is estimated at {found}, over the budget of "
        f"{amount.show(amount.limit)}",
        span=budget.spans.get(amount.key),
        notes=(f"{budget.quantile} of the estimate; from p10 to p90: {band}", f"most: {biggest}"),
        fix=f"raise `{amount.key}`, run less, or say `agentc run --over-budget`",
    )


def _gpu_hours(amount: float) -> str:
    return f"{shown_count(amount)} GPU-hours"


def _tokens(amount: float) -> str:
    return f"{shown_count(amount)} tokens"
