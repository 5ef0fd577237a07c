"""What `plan`, `cost` and `run` share: the estimate of a compiled spec against a store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.cost import Estimate, Summary
    from agentc.plan.work import Work
    from agentc.runtime.store.layout import StoreLayout


def cost_of(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    *,
    cores: int | None = None,
    queued: bool = False,
    gpu: str | None = None,
    others: Sequence[StoreLayout] = (),
) -> tuple[dict[str, Estimate], Summary]:
    """Estimates by job id, and the totals of what has to run on so many cores (default: those of
    this machine), or with so many jobs in a queue. The GPU type is the one given, else that of
    `placement.gpu`, else of the spec's budget."""
    from agentc.cost import DEFAULT_GPU, estimate_plan, summarise

    budget = None if compiled.module is None else compiled.module.budget
    estimates = estimate_plan(
        work.document,
        work.layout,
        table=table,
        gpu=gpu or (DEFAULT_GPU if budget is None else budget.gpu),
        cards=gpu is None,
        others=others,
        states=work.states,
    )
    here = cores or os.cpu_count() or 1
    return estimates, summarise(work.document, estimates, here, queued=queued)


def cost_to_run(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    *,
    cores: int | None = None,
    queued: bool = False,
) -> tuple[dict[str, Estimate], Summary | None]:
    """The same, but nothing when nothing has to run: a finished experiment is passed over in a
    moment."""
    if not work.missing:
        return {}, None
    return cost_of(work, compiled, table, cores=cores, queued=queued)
