"""What of a plan can be run before it is known where its rounds stop: up to the next measures.

Neighbours: `stopping.py` says how far the rounds are; `agentc.cli.run` goes from step to step.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from agentc.ir.search import StoppingRounds
from agentc.kinds.artifacts import METRICS
from agentc.plan.job import Plan, Session
from agentc.plan.keys import session_key
from agentc.searching.stopping import RoundsSoFar


@dataclass(frozen=True, slots=True)
class RoundsStep:
    """The stages whose measures decide next, and the plan without the starts of servers that they
    would share with rounds which may never be."""

    plan: Plan
    stages: tuple[str, ...]

    def objects(self) -> tuple[str, ...]:
        """What the stages measure, in the store."""
        measuring = (job for job in self.plan.jobs if job.draft.produces == METRICS.name)
        return tuple(job.object for job in measuring if job.stage in self.stages)


def step_before(
    plan: Plan,
    stopping: Sequence[StoppingRounds],
    so_far: Sequence[RoundsSoFar],
    needed: Collection[str],
) -> RoundsStep | None:
    """What has to be measured before all that is `needed` (jobs, by id) may run; None where all of
    it is sure to be part of the experiment. `so_far` belongs to `stopping`, one by one."""
    limits = [each.decided for each in so_far]
    ahead = _jobs_ahead(plan, stopping, limits)
    wanted = {job.stage for job in plan.jobs if job.id in ahead and job.id in needed}
    open_stages = {job.stage for job in plan.jobs if job.id in ahead}
    measures = dict.fromkeys(
        each.measures[limit - 1]
        for each, limit in zip(stopping, limits, strict=True)
        if any(stage in wanted for stages in each.rounds[limit:] for stage in stages)
        and each.measures[limit - 1] not in open_stages
    )
    if not measures:
        return None
    keys = {job.id: job.key for job in plan.jobs}
    sessions = (_without(session, ahead, keys) for session in plan.sessions)
    kept = tuple(session for session in sessions if session is not None)
    return RoundsStep(replace(plan, sessions=kept), tuple(measures))


def _jobs_ahead(
    plan: Plan, stopping: Sequence[StoppingRounds], limits: Sequence[int]
) -> frozenset[str]:
    """Jobs of rounds that may never be, in every cell that has them, and what depends on these."""
    sure: dict[str, bool] = {}
    for each, limit in zip(stopping, limits, strict=True):
        for number, stages in enumerate(each.rounds, start=1):
            for stage in stages:
                sure[stage] = sure.get(stage, False) or number <= limit
    ahead: set[str] = set()
    for job in plan.jobs:  # each after what it reads
        if not sure.get(job.stage, True) or any(each in ahead for each in job.parents()):
            ahead.add(job.id)
    return frozenset(ahead)


def _without(session: Session, ahead: frozenset[str], keys: dict[str, str]) -> Session | None:
    members = tuple(each for each in session.members if each not in ahead)
    if members == session.members:
        return session
    if len(members) < 2:
        return None
    return replace(session, members=members, key=session_key([keys[each] for each in members]))
