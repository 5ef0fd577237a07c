"""assign_keys: give every job its content key (`agentc.plan.keys` says what enters one).

Requires: jobs in topological order.
Ensures: every job has a key; two jobs with one key are the same work.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.passes.context import PassContext
from agentc.passes.unit import Unit
from agentc.plan.canonical import CanonicalTexts
from agentc.plan.job import Job
from agentc.plan.keys import job_key


def assign_keys(unit: Unit, context: PassContext) -> Unit:
    """Walk the jobs in order, so that the keys of inputs are known."""
    plan = unit.plan
    if plan is None:
        return unit
    keys: dict[str, str] = {}
    texts = CanonicalTexts()
    jobs: list[Job] = []
    for job in plan.jobs:
        keys[job.id] = job_key(job, plan.environments, keys, texts)
        jobs.append(replace(job, key=keys[job.id]))
    return replace(unit, plan=replace(plan, jobs=tuple(jobs)))
