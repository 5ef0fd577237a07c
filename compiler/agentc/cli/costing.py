"""What `plan`, `cost` and `run` share: the estimate of a compiled spec against a store."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.cost import Estimate, Summary
    from agentc.plan.work import Work
    from agentc.runtime.store.layout import StoreLayout


WORTH_MEASURING_S = 180.0
"""Expected time of a run from which seconds are spent to make its estimate a better one."""
_WORTH_TRYING_S = 15.0
"""Expected time from which it is tried how much of this machine is free, which takes a second."""

_SLOWER = 1.1
"""From so many times the time of a run alone others are worth a word."""


def cost_of(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    *,
    cores: int | None = None,
    queued: bool = False,
    gpu: str | None = None,
    others: Sequence[StoreLayout] = (),
    measure_from: float | None = None,
) -> tuple[dict[str, Estimate], Summary]:
    """Estimates by job id, and the totals of what has to run on so many cores (default: those of
    this machine), or with so many jobs in a queue. The GPU type is the one given, else that of
    `placement.gpu`, else of the spec's budget. With `measure_from`, for a run that takes a while
    here, how much of the machine is free counts; and where it is expected to take so many seconds,
    what is not known yet of this machine and of the plan's environments is measured first."""
    from agentc.cost import DEFAULT_GPU, estimate_plan, summarise
    from agentc.cost.machine_state import (
        environments_sounded,
        machine_measured,
        share_of_cores,
        slowed,
        widened,
    )

    budget = None if compiled.module is None else compiled.module.budget
    here = cores or os.cpu_count() or 1

    def estimated(report: Callable[[str], None] | None) -> dict[str, Estimate]:
        document, store = work.document, work.layout
        return estimate_plan(
            document,
            store,
            table=table,
            gpu=gpu or (DEFAULT_GPU if budget is None else budget.gpu),
            cards=gpu is None,
            others=others,
            states=work.states,
            calibration=None if queued else machine_measured(document, store, report),
            sounded=environments_sounded(document, table, store, report),
        )

    estimates = estimated(None)
    summary = summarise(work.document, estimates, here, queued=queued)
    if measure_from is None or queued or summary.wall.median < _WORTH_TRYING_S:
        return estimates, summary
    if summary.wall.median >= measure_from:
        estimates = estimated(_say)
        summary = summarise(work.document, estimates, here)
    share = share_of_cores(min(here, os.cpu_count() or 1))
    if share == 1.0:
        return estimates, summary
    estimates = slowed(estimates, share)
    slower = summarise(work.document, estimates, here)
    if slower.wall.median < _SLOWER * summary.wall.median:
        return estimates, summary  # it rests on finished jobs, not on what is free now
    wall, jobs = widened(slower.wall, share), widened(slower.work, share)
    return estimates, replace(slower, wall=wall, work=jobs, share=share, alone=summary.wall.median)


def not_measured(work: Work, summary: Summary) -> str:
    """What `cost` and `run` would look at first and a plan, which computes nothing, does not; ""
    where they would not either."""
    from agentc.cost.machine_state import machine_unknown

    if summary.wall.median < _WORTH_TRYING_S:
        return ""
    if machine_unknown(work.document, work.layout):
        return "this machine was not measured"
    return "how busy this machine is does not count"


def _say(line: str) -> None:
    print(f"agentc: {line}", file=sys.stderr, flush=True)


def cost_to_run(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    *,
    cores: int | None = None,
    queued: bool = False,
    measure_from: float | None = None,
) -> tuple[dict[str, Estimate], Summary | None]:
    """The same, but nothing when nothing has to run: a finished experiment is passed over in a
    moment."""
    if not work.missing:
        return {}, None
    return cost_of(work, compiled, table, cores=cores, queued=queued, measure_from=measure_from)
