"""summarise: totals of the work that remains, and the wall time of running it on so many cores.

Totals of uncertain parts come from drawn scenarios: errors of jobs of one kind go together (the
same guess enters all of them), and sums of log-normals have no formula that is right for wide ones.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.cost.estimate import Estimate

SHARED = 0.6
"""Share of the variance of a job's logarithm that all jobs of its kind have in common."""
_DRAWS = 20_000
"""Jobs x scenarios that are drawn at most, within MOST and LEAST scenarios."""
_MOST, _LEAST = 400, 24
_SEED = 20240


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
    """What remains to be done, all jobs together: wall time in seconds on `cores`, work in
    seconds of jobs, GPU-hours, tokens, bytes. `path` is the chain of jobs that the wall time
    cannot go below, `path_seconds` its length; `spent_seconds` is what the store's part took."""

    jobs: int
    cores: int
    wall: Band
    work: Band
    gpu_hours: Band
    tokens: Band
    disk: Band
    path: tuple[str, ...]
    path_seconds: float
    spent_seconds: float


def summarise(
    document: Mapping[str, Any],
    estimates: Mapping[str, Estimate],
    cores: int,
    *,
    queued: bool = False,
) -> Summary:
    """Totals over the jobs to run, each result counted once. With `queued`, `cores` is a number of
    jobs at once, however many cores each has: a cluster's queue."""
    jobs = _distinct(estimates.values())
    graph = _Graph(document, jobs, queued)
    count = max(1, len(jobs))
    draws = max(_LEAST, min(_MOST, _DRAWS // count))
    gauss = random.Random(_SEED).gauss
    together, alone = math.sqrt(SHARED), math.sqrt(1 - SHARED)
    walls, works, gpus, tokens, disks = [], [], [], [], []
    for _ in range(draws):
        common: dict[str, float] = {}
        seconds: dict[str, float] = {}
        work = gpu = token = disk = 0.0
        for job in jobs:
            shared = common.get(job.kind)
            if shared is None:
                shared = common[job.kind] = gauss(0.0, 1.0)
            off = together * shared + alone * gauss(0.0, 1.0)
            taken = seconds[job.object] = job.seconds.at(off)
            work += taken
            if job.gpus:
                gpu += taken * job.gpus / 3600
            if job.tokens.median:
                token += job.tokens.at(off)
            disk += job.disk.at(off)
        walls.append(graph.wall(seconds, cores))
        works.append(work)
        gpus.append(gpu)
        tokens.append(token)
        disks.append(disk)
    medians = {job.object: job.seconds.median for job in jobs}
    path = graph.longest(medians)
    spent = sum(e.seconds.median for e in _distinct(estimates.values(), "cached"))
    return Summary(
        jobs=len(jobs),
        cores=cores,
        wall=_band(walls),
        work=_band(works),
        gpu_hours=_band(gpus),
        tokens=_band(tokens),
        disk=_band(disks),
        path=tuple(job.id for job in jobs if job.object in path),
        path_seconds=sum(medians[name] for name in path),
        spent_seconds=spent,
    )


class _Graph:
    """Units of work (a job, or the members of a session, which run under one start of their
    server, side by side unless one reads another's result) and what each waits for."""

    def __init__(self, document: Mapping[str, Any], jobs: Sequence[Estimate], queued: bool) -> None:
        left = {job.object for job in jobs}
        by_id = {str(job["id"]): f"{job['kind']}/{job['key']}" for job in document["jobs"]}
        self._unit = {name: name for name in left}
        for session in document.get("sessions") or ():
            for member in session["members"]:
                if by_id[member] in left:
                    self._unit[by_id[member]] = f"session/{session['key']}"
        self._members: dict[str, list[str]] = {}
        self._needs: dict[str, set[str]] = {}
        self._inside: dict[str, set[str]] = {}
        self._cpus: dict[str, int] = {}
        cpus = {job.object: 1 if queued else job.cpus for job in jobs}
        for job in document["jobs"]:
            name = f"{job['kind']}/{job['key']}"
            if name not in left:
                continue
            unit = self._unit[name]
            if name not in self._members.setdefault(unit, []):
                self._members[unit].append(name)
            self._cpus[unit] = max(self._cpus.get(unit, 1), cpus[name])
            needs = self._needs.setdefault(unit, set())
            inside = self._inside.setdefault(name, set())
            for inputs in job["inputs"].values():
                needs.update(self._unit[each] for each in inputs if each in left)
                inside.update(each for each in inputs if each in left and self._unit[each] == unit)
            needs.discard(unit)
        self._order = {unit: place for place, unit in enumerate(self._needs)}
        self._readers: dict[str, list[str]] = {unit: [] for unit in self._needs}
        for unit, needs in self._needs.items():
            for need in needs:
                self._readers[need].append(unit)

    def wall(self, seconds: Mapping[str, float], cores: int) -> float:
        """Time of list scheduling: what is ready first starts first, if its cores are free. Asking
        for more cores than there are takes all of them, as the driver does it."""
        times = self._times(seconds)
        waiting = {unit: len(needs) for unit, needs in self._needs.items()}
        order = self._order
        ready = [(order[unit], unit) for unit, count in waiting.items() if not count]
        heapq.heapify(ready)
        running: list[tuple[float, str]] = []
        free, now = cores, 0.0
        while ready or running:
            held: list[tuple[int, str]] = []
            while ready and free > 0:
                place, unit = heapq.heappop(ready)
                wanted = min(self._cpus[unit], cores)
                if wanted > free:
                    held.append((place, unit))
                    if len(held) > 8:
                        break
                    continue
                free -= wanted
                heapq.heappush(running, (now + times[unit], unit))
            for each in held:
                heapq.heappush(ready, each)
            now, done = heapq.heappop(running)
            free += min(self._cpus[done], cores)
            for reader in self._readers[done]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    heapq.heappush(ready, (order[reader], reader))
        return now

    def longest(self, seconds: Mapping[str, float]) -> set[str]:
        """Objects on the longest chain; of a session, the member that takes longest."""
        times = self._times(seconds)
        ends: dict[str, float] = {}
        before: dict[str, str | None] = {}
        for unit in self._sorted():
            last = max(self._needs[unit], key=lambda need: ends[need], default=None)
            before[unit] = last
            ends[unit] = times[unit] + (0.0 if last is None else ends[last])
        found: set[str] = set()
        end = max(ends, key=lambda name: ends[name], default=None)
        while end is not None:
            found.update(self._longest(end, seconds)[1])
            end = before[end]
        return found

    def _times(self, seconds: Mapping[str, float]) -> dict[str, float]:
        return {unit: self._longest(unit, seconds)[0] for unit in self._members}

    def _longest(self, unit: str, seconds: Mapping[str, float]) -> tuple[float, tuple[str, ...]]:
        """The longest chain of members, for one can wait for another: its time and its names."""
        chains: dict[str, tuple[float, tuple[str, ...]]] = {}
        for name in self._members[unit]:  # in topological order
            before = max((chains[each] for each in self._inside[name]), default=(0.0, ()))
            chains[name] = (before[0] + seconds[name], (*before[1], name))
        return max(chains.values())

    def _sorted(self) -> list[str]:
        """Units in topological order."""
        waiting = {unit: len(needs) for unit, needs in self._needs.items()}
        ready = [unit for unit, count in waiting.items() if not count]
        for unit in ready:  # grows while it is gone through
            for reader in self._readers[unit]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        return ready


def _distinct(estimates: Iterable[Estimate], state: str = "run") -> list[Estimate]:
    found: dict[str, Estimate] = {}
    for each in estimates:
        if each.state == state:
            found.setdefault(each.object, each)
    return list(found.values())


def _band(values: list[float]) -> Band:
    values.sort()

    def at(share: float) -> float:
        place = share * (len(values) - 1)
        below = math.floor(place)
        above = min(below + 1, len(values) - 1)
        return values[below] + (place - below) * (values[above] - values[below])

    return Band(at(0.1), at(0.5), at(0.9))
