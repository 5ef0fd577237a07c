"""Rounds that stop (`until:`): a function of a plan and a store, without a state of its own; and
which part of a plan can be run before it is known where its rounds stop.

docs/design/stopping_and_searching.md says why. `agentc.cli` compiles what has stopped as the
experiment of fewer rounds, and runs it step by step.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agentc.ir.search import StoppingRounds, StoppingRule
from agentc.kinds.artifacts import METRICS
from agentc.kinds.field import Json
from agentc.plan.job import Plan, Session
from agentc.plan.keys import session_key
from agentc.plan.work import Document, object_of
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.objective import Measured, value_of
from agentc.text import counted, some


@dataclass(frozen=True, slots=True)
class Stop:
    """The round after which a rule held first, and why, for people."""

    after: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsProgress:
    """How far rounds that stop are: `planned` of `most` are in the plan, `values` are the measures
    of the first ones, as far as the store has them without a gap (None: no task has a score)."""

    name: str
    rule: StoppingRule
    most: int
    planned: int
    values: tuple[float | None, ...]

    @property
    def stop(self) -> Stop | None:
        """Where the rule has held, if it has."""
        return stop_of(self.rule, self.values)

    @property
    def decided(self) -> int:
        """The last round that is sure to be part of the experiment: the one that is to be measured
        next, or the last where nothing is left to decide."""
        return self.planned if self.stop is not None else min(len(self.values) + 1, self.planned)

    def sentence(self) -> str:
        """`eto: up to 5 rounds; stopped after 2: success 0.81 reached 0.8`."""
        stop, metric = self.stop, self.rule.metric
        if stop is not None and stop.after < self.most:
            return f"{self.name}: up to {self.most} rounds; stopped after {stop.after}: {stop.why}"
        if stop is not None:
            return f"{self.name}: all {counted(self.most, 'round')}; {stop.why} in the last"
        last = len(self.values)
        told = None if last == 0 else self.values[-1]
        shown = "no task has a score" if told is None else f"{metric} {_number_text(told)}"
        if last == self.most:
            return f"{self.name}: all {counted(self.most, 'round')}; {shown}, {self._unmet()}"
        after = f"; after round {last}: {shown}" if last else ""
        return (
            f"{self.name}: up to {counted(self.most, 'round')}, until {rule_text(self.rule)}{after}"
        )

    def document(self) -> dict[str, Json]:
        """What `sentence` says, as data."""
        stop = self.stop
        return {
            "name": self.name,
            "most": self.most,
            "metric": self.rule.metric,
            "values": list(self.values),
            "stopped_after": None if stop is None else stop.after,
            "why": None if stop is None else stop.why,
        }

    def _unmet(self) -> str:
        rule = self.rule
        if rule.no_gain_for is None:
            assert rule.reaches is not None
            return f"which did not reach {_number_text(rule.reaches)}"
        return "and the rule did not hold"


def rounds_progress(document: Document, layout: StoreLayout) -> tuple[RoundsProgress, ...]:
    """How far the rounds of a plan are that stop by a rule, in the order of the plan; plans of a
    spec without `until:` have none."""
    stopping = (document.get("experiment") or {}).get("stopping") or ()
    measuring: dict[str, str] = {}
    for job in document["jobs"] if stopping else ():
        if job["produces"] == "Metrics":
            measuring.setdefault(str(job["stage"]), object_of(job))
    return tuple(
        RoundsProgress(
            name=str(each["name"]),
            rule=(rule := StoppingRule.of(each["rule"])),
            most=int(each["most"]),
            planned=len(each["measures"]),
            values=tuple(_values(each["measures"], measuring, rule.metric, layout)),
        )
        for each in stopping
    )


def round_lines(so_far: Iterable[RoundsProgress]) -> list[str]:
    """A line for each repeat that stops, once for cells of which the same is to be said."""
    said: dict[str, list[str]] = {}
    for each in so_far:
        words = each.sentence().removeprefix(f"{each.name}: ")
        said.setdefault(words, []).append(each.name)
    return [f"{some(names, 4)}: {words}" for words, names in said.items()]


def rule_text(rule: StoppingRule) -> str:
    """A rule in words: `success reaches 0.8 or has no gain for 2 rounds`."""
    ways = []
    if rule.reaches is not None:
        ways.append(f"reaches {_number_text(rule.reaches)}")
    if rule.no_gain_for is not None:
        more = f" of more than {_number_text(rule.min_gain)}" if rule.min_gain else ""
        ways.append(f"has no gain{more} for {counted(rule.no_gain_for, 'round')}")
    return f"{rule.metric} {' or '.join(ways)}"


def stop_of(rule: StoppingRule, values: Sequence[float | None]) -> Stop | None:
    """Where a rule holds first, on what rounds 1, 2, ... measure. A round without a score tells
    nothing: it neither reaches anything nor counts as one without a gain."""
    sign = 1.0 if rule.direction == "maximize" else -1.0
    best, best_round, without = -math.inf, 0, 0
    for number, value in enumerate(values, start=1):
        if value is None:
            continue
        if rule.reaches is not None and sign * value >= sign * rule.reaches:
            why = f"{rule.metric} {_number_text(value)} reached {_number_text(rule.reaches)}"
            return Stop(number, why)
        if best_round == 0 or sign * value > best + rule.min_gain:
            best, best_round, without = sign * value, number, 0
            continue
        without += 1
        if rule.no_gain_for is not None and without >= rule.no_gain_for:
            rounds = counted(without, "round")
            held = f"{_number_text(sign * best)} of round {best_round}"
            return Stop(number, f"no gain for {rounds} over {rule.metric} {held}")
    return None


def _values(
    stages: Sequence[str], measuring: dict[str, str], metric: str, layout: StoreLayout
) -> Iterator[float | None]:
    """The measures of rounds 1, 2, ... up to the first that the store does not have."""
    for number, stage in enumerate(stages, start=1):
        name = measuring.get(stage)
        if name is None or not layout.is_published(name):
            return
        value = value_of(Measured(number, stage, (name,)), metric, layout)
        yield value if value is not None and math.isfinite(value) else None


def _number_text(number: float) -> str:
    return f"{number:.4g}"


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
    so_far: Sequence[RoundsProgress],
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
