"""plan_until: a plan whose targets are some of its stages, for whoever runs it without agentc.

Neighbour: `work.py`, whose `find_work` means the same by `until`.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.plan.job import Plan
from agentc.plan.stage_names import meant_by
from agentc.plan.work import UnknownStageError


def plan_until(plan: Plan, until: str | None) -> Plan:
    """The plan with the jobs of the stages that `until` means as targets; all its jobs stay, since
    what a job is does not depend on what is asked for. None changes nothing.

    Raises UnknownStageError.
    """
    if until is None:
        return plan
    stages = tuple(dict.fromkeys(job.stage for job in plan.jobs))
    meant = meant_by(until, stages)
    if not meant:
        raise UnknownStageError(plan.name, until, stages)
    return replace(plan, targets=tuple(job.id for job in plan.jobs if job.stage in meant))
