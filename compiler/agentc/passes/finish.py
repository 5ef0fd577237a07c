"""finish: what the plan says about the experiment as a whole.

Requires: jobs with keys.
Ensures: `targets` are the jobs that no other job reads, and `experiment` holds what the report
and the status line show: description, paper, discrepancies, and the stages of each round.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.passes.context import PassContext
from agentc.passes.lowering.experiment import experiment_facts
from agentc.passes.unit import Unit


def finish(unit: Unit, context: PassContext) -> Unit:
    """Add targets and the experiment's metadata."""
    plan, module = unit.plan, unit.module
    if plan is None or module is None:
        return unit
    read = {parent for job in plan.jobs for parent in job.parents()}
    targets = tuple(job.id for job in plan.jobs if job.id not in read)
    return replace(unit, plan=replace(plan, targets=targets, experiment=experiment_facts(module)))
