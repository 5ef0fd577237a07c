"""finish: what the plan says about the experiment as a whole.

Requires: jobs with keys.
Ensures: `targets` are the jobs that no other job reads, and `experiment` holds what the report
and the status line show: description, paper, discrepancies, the stages of each round, and the rules
by which rounds stop, which no job is told.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.passes.context import PassContext
from agentc.passes.lowering.experiment import experiment_facts, stopping_facts
from agentc.passes.unit import Unit


def finish(unit: Unit, context: PassContext) -> Unit:
    """Add targets and the experiment's metadata."""
    plan, module = unit.plan, unit.module
    if plan is None or module is None:
        return unit
    read = {parent for job in plan.jobs for parent in job.parents()}
    targets = tuple(job.id for job in plan.jobs if job.id not in read)
    experiment = {**experiment_facts(module), **stopping_facts(module)}
    return replace(unit, plan=replace(plan, targets=targets, experiment=experiment))
