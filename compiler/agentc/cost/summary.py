"""summarise: totals of the work that remains, and the wall time of running it at a place.

Medians add, and are scheduled as the driver would. Errors of jobs of one kind go together in part,
since the same guess enters all of them; those of other kinds are independent.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.cost.estimate import Estimate
from agentc.cost.fitting import misfits
from agentc.cost.place import Place
from agentc.cost.quantities import ZERO, Quantity

SHARED = 0.6
"""Share of the variance of a job's logarithm that all jobs of its kind have in common."""


@dataclass(frozen=True, slots=True)
class Band:
    """Quantiles of a total."""

    low: float
    median: float
    high: float

    def at(self, quantile: str) -> float:
        """`p10`, `p50` or `p90`."""
        return {"p10": self.low, "p50": self.median, "p90": self.high}[quantile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What remains to be done, all jobs together: wall time in seconds at a `place` with nothing
    else to do, work in seconds of jobs, GPU-hours (`shared_gpu_hours` of them of shared servers,
    which hold their GPUs while their clients run), tokens, those through models that environments
    ask (`asked`), bytes of disk. `loaded` is the wall time at the present load of this machine.
    `checkpoints` are the bytes of the disk that the training `saver` needs until it ends.
    `path` is the chain of jobs that the wall time cannot go below, `path_seconds` its length;
    `spent_seconds` is what the store's part took. `gpus` are the most that a job has, of the types
    `cards`. `unknown` are the models of which nothing says how large they are; `misfits` says of
    which jobs the GPUs of `place` are too small or too few."""

    jobs: int
    place: Place
    wall: Band
    loaded: float
    work: Band
    gpu_hours: Band
    shared_gpu_hours: float
    tokens: Band
    asked: Band
    disk: Band
    checkpoints: float
    saver: str
    path: tuple[str, ...]
    path_seconds: float
    spent_seconds: float
    gpus: int = 0
    cards: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    misfits: tuple[str, ...] = ()

    @property
    def cores(self) -> int:
        """Cores, or jobs of a queue, at once."""
        return self.place.cores


def summarise(
    document: Mapping[str, Any],
    estimates: Mapping[str, Estimate],
    place: Place,
) -> Summary:
    """Totals over the jobs to run, each result counted once."""
    jobs = _distinct(estimates.values())
    graph = _Graph(document, jobs, place)
    held = _gpus_of_clients(document, jobs)
    medians = [job.seconds.median for job in jobs]
    work = _sum(jobs, lambda job: job.seconds)
    gpu_hours = _sum(jobs, lambda job: job.gpu_hours)
    shared = sum(medians[number] * cards for number, cards in held) / 3600
    path = graph.longest(medians)
    slower = [s if job.gpus else s * place.slowdown for s, job in zip(medians, jobs, strict=True)]
    saver = max(jobs, key=lambda job: job.checkpoints, default=None)
    checkpoints = 0.0 if saver is None else saver.checkpoints
    spent = sum(e.seconds.median for e in _distinct(estimates.values(), "cached"))
    return Summary(
        jobs=len(jobs),
        place=place,
        # What makes the work longer makes the schedule longer.
        wall=_band(Quantity(graph.wall(medians), work.spread)),
        loaded=graph.wall(slower),
        work=_band(work),
        gpu_hours=_band(Quantity(gpu_hours.median + shared, gpu_hours.spread or work.spread)),
        shared_gpu_hours=shared,
        tokens=_band(_sum(jobs, lambda job: job.tokens)),
        asked=_band(_sum(jobs, lambda job: job.asked)),
        disk=_band(_sum(jobs, lambda job: job.disk), checkpoints),
        checkpoints=checkpoints,
        saver=saver.stage if saver is not None and checkpoints else "",
        path=tuple(jobs[number].id for number in path),
        path_seconds=sum(medians[number] for number in path),
        spent_seconds=spent,
        gpus=max((job.gpus for job in jobs), default=0),
        cards=tuple(dict.fromkeys(job.card for job in jobs if job.gpus)),
        unknown=tuple(dict.fromkeys(e.unknown for e in estimates.values() if e.unknown)),
        misfits=misfits(document, {job.object for job in jobs}, place),
    )


def wall_left(
    document: Mapping[str, Any],
    estimates: Mapping[str, Estimate],
    cores: int,
    *,
    queued: bool = False,
    gpus: int | None = None,
) -> Callable[[Mapping[str, float]], float]:
    """What gives the wall time that is left, from the seconds that jobs still take, by id; of those
    that are not named the estimate holds."""
    jobs = _distinct(estimates.values())
    graph = _Graph(document, jobs, Place(cores=cores, queued=queued, gpus=gpus))
    expected = {job.id: job.seconds.median for job in jobs}

    def left(seconds: Mapping[str, float]) -> float:
        return graph.wall([seconds.get(name, each) for name, each in expected.items()])

    return left


def _gpus_of_clients(
    document: Mapping[str, Any], jobs: Sequence[Estimate]
) -> list[tuple[int, int]]:
    """(place among the jobs, GPUs) for each shared server that a job is a client of: the server
    holds them while the job runs."""
    gpus = {
        server["id"]: int(server["resources"].get("gpus") or 0) * int(server["replicas"])
        for server in document.get("servers") or ()
    }
    numbers = {job.object: number for number, job in enumerate(jobs)}
    return [
        (numbers.pop(name), held)
        for job in document["jobs"]
        if (name := f"{job['kind']}/{job['key']}") in numbers
        and (held := sum(gpus.get(lease.get("server"), 0) for lease in job.get("leases") or ()))
    ]


class _Graph:
    """Units of work (a job, or the members of a session, which run under one start of their
    server, side by side unless one reads another's result) and what each waits for.

    Jobs and units are numbers here, for they are gone through in every scenario: a job's is its
    place among the jobs to run, a unit's its place in the plan."""

    def __init__(self, document: Mapping[str, Any], jobs: Sequence[Estimate], place: Place) -> None:
        self._place = place
        self._names = [job.object for job in jobs]
        numbers = {name: number for number, name in enumerate(self._names)}
        units, unit_of = _units(document, numbers)
        self._members: list[list[int]] = [[] for _ in units]
        self._needs: list[set[int]] = [set() for _ in units]
        self._cpus = [1 for _ in units]
        self._gpus = [0 for _ in units]
        self._inside: list[list[int]] = [[] for _ in jobs]
        """By job: the members of its own unit that it reads."""
        for job in document["jobs"]:
            name = f"{job['kind']}/{job['key']}"
            if name not in numbers:
                continue
            number, unit = numbers[name], unit_of[name]
            if number not in self._members[unit]:
                self._members[unit].append(number)
            if not place.queued:
                self._cpus[unit] = max(self._cpus[unit], jobs[number].cpus)
                self._gpus[unit] = max(self._gpus[unit], jobs[number].gpus)
            inputs = [made for names in job["inputs"].values() for made in names if made in numbers]
            self._needs[unit].update(unit_of[made] for made in inputs)
            inside = [numbers[made] for made in inputs if unit_of[made] == unit]
            self._inside[number] = list(dict.fromkeys([*self._inside[number], *inside]))
        for unit, needs in enumerate(self._needs):
            needs.discard(unit)
        self._readers = _readers(self._needs)
        # Of units that end at the same moment the first by name is taken.
        self._by_name = sorted(range(len(units)), key=units.__getitem__)
        self._rank = [0] * len(units)
        for rank, unit in enumerate(self._by_name):
            self._rank[unit] = rank

    def wall(self, seconds: Sequence[float]) -> float:
        """Time of list scheduling: what is ready first starts first, if its cores and GPUs are
        free. Asking for more than there are takes all of them, as the driver does it."""
        cores = self._place.cores
        gpus = sum(self._gpus) if self._place.gpus is None else self._place.gpus
        times = self._times(seconds)
        waiting = [len(needs) for needs in self._needs]
        taken = [min(cpus, cores) for cpus in self._cpus]
        held_gpus = [min(each, gpus) for each in self._gpus]
        rank, by_name, readers = self._rank, self._by_name, self._readers
        pop, push = heapq.heappop, heapq.heappush
        ready = [unit for unit, count in enumerate(waiting) if not count]
        running: list[tuple[float, int]] = []
        free, free_gpus, now = cores, gpus, 0.0
        while ready or running:
            held: list[int] = []
            while ready and free > 0:
                unit = pop(ready)
                if taken[unit] > free or held_gpus[unit] > free_gpus:
                    held.append(unit)
                    if len(held) > 8:
                        break
                    continue
                free -= taken[unit]
                free_gpus -= held_gpus[unit]
                push(running, (now + times[unit], rank[unit]))
            for each in held:
                push(ready, each)
            now, place = pop(running)
            done = by_name[place]
            free += taken[done]
            free_gpus += held_gpus[done]
            for reader in readers[done]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    push(ready, reader)
        return now

    def longest(self, seconds: Sequence[float]) -> list[int]:
        """Jobs on the longest chain; of a session, the member that takes longest."""
        times = self._times(seconds)
        ends: dict[int, float] = {}
        before: dict[int, int | None] = {}
        for unit in self._sorted():
            # Of equal ones the first of the plan: a set has no order of its own.
            last = max(sorted(self._needs[unit]), key=ends.__getitem__, default=None)
            before[unit] = last
            ends[unit] = times[unit] + (0.0 if last is None else ends[last])
        chains: set[int] = set()
        end = max(ends, key=lambda unit: ends[unit], default=None)
        while end is not None:
            chains.update(self._chain(end, seconds))
            end = before[end]
        return sorted(chains)

    def _times(self, seconds: Sequence[float]) -> list[float]:
        """By unit: the longest chain of its members, for one can wait for another."""
        times: list[float] = []
        for members in self._members:
            if len(members) == 1:
                times.append(seconds[members[0]])
                continue
            ends: dict[int, float] = {}
            for number in members:  # in topological order
                last = max((ends[member] for member in self._inside[number]), default=0.0)
                ends[number] = last + seconds[number]
            times.append(max(ends.values()))
        return times

    def _chain(self, unit: int, seconds: Sequence[float]) -> tuple[int, ...]:
        """The longest chain of a unit's members; of equal ones the last by name."""
        chains: dict[int, tuple[float, tuple[str, ...], tuple[int, ...]]] = {}
        for number in self._members[unit]:
            end, names, chain = max(
                (chains[member] for member in self._inside[number]), default=(0.0, (), ())
            )
            name = self._names[number]
            chains[number] = (end + seconds[number], (*names, name), (*chain, number))
        return max(chains.values())[2]

    def _sorted(self) -> list[int]:
        """Units in topological order."""
        waiting = [len(needs) for needs in self._needs]
        ready = [unit for unit, count in enumerate(waiting) if not count]
        for unit in ready:  # grows while it is gone through
            for reader in self._readers[unit]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        return ready


def _sessions(document: Mapping[str, Any]) -> dict[str, str]:
    """Objects that are made in a session, with its name."""
    sessions = document.get("sessions") or ()
    if not sessions:
        return {}
    by_id = {str(job["id"]): f"{job['kind']}/{job['key']}" for job in document["jobs"]}
    return {
        by_id[member]: f"session/{session['key']}"
        for session in sessions
        for member in session["members"]
    }


def _units(
    document: Mapping[str, Any], objects: Collection[str]
) -> tuple[list[str], dict[str, int]]:
    """What runs as one, by name: sessions, and objects outside of them; and the unit of each
    object."""
    session_of = _sessions(document)
    units: dict[str, int] = {}
    unit_of: dict[str, int] = {}
    for job in document["jobs"]:
        name = f"{job['kind']}/{job['key']}"
        if name in objects and name not in unit_of:
            unit_of[name] = units.setdefault(session_of.get(name, name), len(units))
    return list(units), unit_of


def _readers(needs: Sequence[Iterable[int]]) -> list[list[int]]:
    """The units that need each unit."""
    readers: list[list[int]] = [[] for _ in needs]
    for unit, needed in enumerate(needs):
        for need in needed:
            readers[need].append(unit)
    return readers


def _distinct(estimates: Iterable[Estimate], state: str = "run") -> list[Estimate]:
    distinct: dict[str, Estimate] = {}
    for estimate in estimates:
        if estimate.state == state:
            distinct.setdefault(estimate.object, estimate)
    return list(distinct.values())


def _sum(jobs: Iterable[Estimate], amount: Callable[[Estimate], Quantity]) -> Quantity:
    """An amount over all jobs: medians add, and errors to first order."""
    median = own = 0.0
    of_kind: dict[str, float] = {}
    for job in jobs:
        each = amount(job)
        error = each.median * each.spread
        median += each.median
        own += error * error
        of_kind[job.kind] = of_kind.get(job.kind, 0.0) + error
    if not median:
        return ZERO
    together = sum(error * error for error in of_kind.values())
    return Quantity(median, math.sqrt(SHARED * together + (1 - SHARED) * own) / median)


def _band(amount: Quantity, more: float = 0.0) -> Band:
    """Its quantiles, and `more` that is certain."""
    return Band(amount.low + more, amount.median + more, amount.high + more)
