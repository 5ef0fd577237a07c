"""Past: what finished jobs say about quantities that estimates need, looked up by likeness.

A sample is ln(actual / prior) of one quantity of one job, with traits to compare it by; `refine`
corrects a prior by samples of like jobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentc.cost.quantities import Quantity

TIME_NOISE = 0.35
SIZE_NOISE = 0.15
"""Standard deviation (natural logarithm) that is assumed among equal jobs before any were seen, as
firmly as one observation would: of times, and of sizes such as tokens of a row."""
_LEAST_NOISE = 0.05
_NORMAL = 1.2533
"""From the mean absolute deviation of a normal distribution to its standard deviation."""
_FAR = 2.3
"""Deviations beyond a factor of ten count as that: one broken clock widens no band for ever."""


def refine(
    prior: Quantity, observed: Sequence[tuple[float, float]], noise: float = TIME_NOISE
) -> Quantity:
    """The prior corrected by (ln actual/prior, weight) pairs.

    Without observations it is the prior itself; with many like ones the median is theirs and the
    spread is how much they differ among each other.
    """
    observed = [(ratio, weight) for ratio, weight in observed if weight > 0.01]
    if not observed or prior.median <= 0:
        return prior
    if prior.spread == 0:
        return prior  # what the settings fix is no guess, and nothing corrects it
    # A prior's variance is of two kinds: jobs differ among each other, and the guess is off.
    before = prior.spread**2
    usual = min(noise**2, 0.75 * before)
    off = before - usual
    count = sum(weight for _, weight in observed)
    centre = weighted_median(observed)
    # Mean and not median deviation: a machine that is sometimes busy gives two clusters, and the
    # median deviation sees only the larger one.
    apart = _NORMAL * sum(w * min(abs(ratio - centre), _FAR) for ratio, w in observed) / count
    among = max((usual + count * apart**2) / (1 + count), _LEAST_NOISE**2)
    data = among / count
    trust = off / (off + data)
    return Quantity(
        prior.median * math.exp(trust * centre), math.sqrt(off * data / (off + data) + among)
    )


def weighted_median(pairs: Sequence[tuple[float, float]]) -> float:
    """The value with half of the weight on either side; between two when the half falls there."""
    ordered = sorted(pairs)
    half = sum(weight for _, weight in ordered) / 2
    passed = 0.0
    for place, (value, weight) in enumerate(ordered):
        passed += weight
        if math.isclose(passed, half) and place + 1 < len(ordered):
            return (value + ordered[place + 1][0]) / 2
        if passed > half:
            return value
    return ordered[-1][0]


Traits: TypeAlias = Mapping[str, str | float]

OTHERWISE: dict[str, float] = {
    "environment": 0.3,
    "split": 0.6,
    "policy": 0.05,
    "machine": 0.2,
    "server": 0.2,
    "data": 0.4,
}
"""Weight of a sample that differs in a trait that is a word."""
REACH: dict[str, float] = {
    "parameters": math.log(6),
    "tokens": math.log(20),
    "max_tokens": math.log(4),
    "max_turns": math.log(2),
    "cpus": math.log(3),
    "gpus": math.log(3),
}
"""Distance in the logarithm of a trait that is a number at which a sample weighs exp(-1/2)."""
ALIKE = 0.3
"""Weight from which a sample counts as a like job in what people are shown."""
TIMES = ("seconds", "start")
"""Quantities that are times; the others are sizes."""
_MOST = 80
"""Samples of a quantity that are kept, the latest."""


@dataclass(slots=True)
class PastJob:
    """One observation, made by the job of an object in a stage."""

    ratio: float
    traits: Traits
    source: str
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Refined:
    """A refined quantity, the number of like jobs that it is based on, and how many of these were
    runs of the same stage."""

    quantity: Quantity
    like: int = 0
    of_stage: int = 0


@dataclass(slots=True)
class Past:
    """What jobs on CPUs say, or jobs on GPUs: samples by (quantity, backend), numbers of tasks that
    were met, by (environment backend, identity, split) and by object, and weights of models by
    (repository, revision)."""

    samples: dict[tuple[str, str], list[PastJob]] = field(default_factory=dict)
    tasks: dict[tuple[str, str, str], dict[str, float]] = field(default_factory=dict)
    parameters: dict[tuple[str, str], float] = field(default_factory=dict)
    _memo: dict[object, Refined] = field(default_factory=dict)

    def add(self, name: str, backend: str, sample: PastJob) -> None:
        """Keep a sample; the latest ones when there are many."""
        kept = self.samples.setdefault((name, backend), [])
        kept.append(sample)
        del kept[:-_MOST]
        self._memo.clear()

    def observe(
        self,
        name: str,
        backend: str,
        actual: float | None,
        prior: Quantity,
        traits: Traits,
        source: str,
        stage: str,
    ) -> None:
        """Compare an actual value with its prior; nothing is kept of what was not measured."""
        if actual is None or actual <= 0 or prior.median <= 0:
            return
        self.add(name, backend, PastJob(math.log(actual / prior.median), traits, source, stage))

    def tasks_of(self, backend: str, identity: str, split: str) -> float | None:
        """How many tasks a split had under the same settings, or None."""
        return next(iter(self.tasks.get((backend, identity, split), {}).values()), None)

    def without(self, source: str) -> Past:
        """The past before one job of it."""
        return Past(
            samples={
                key: [each for each in samples if each.source != source]
                for key, samples in self.samples.items()
            },
            tasks={
                key: {name: count for name, count in counts.items() if name != source}
                for key, counts in self.tasks.items()
            },
            parameters=dict(self.parameters),
        )

    def refined(
        self, name: str, backend: str, prior: Quantity, traits: Traits, stage: str = ""
    ) -> Refined:
        """The prior corrected by the like samples."""
        samples = self.samples.get((name, backend))
        if not samples:
            return Refined(prior)
        # Jobs of a sweep are alike: one look-up serves all of them.
        key = (name, backend, prior, tuple(traits.items()), stage)
        found = self._memo.get(key)
        if found is None:
            weighted = [(each.ratio, likeness(traits, each.traits)) for each in samples]
            noise = TIME_NOISE if name in TIMES else SIZE_NOISE
            alike = [
                each.stage
                for each, (_, weight) in zip(samples, weighted, strict=True)
                if weight >= ALIKE
            ]
            of_stage = alike.count(stage) if stage else 0
            refined = refine(prior, weighted, noise)
            found = self._memo[key] = Refined(refined, len(alike), of_stage)
        return found


@dataclass(frozen=True, slots=True)
class History:
    """What jobs on CPUs say, and what jobs on GPUs say: neither is learned from for the other."""

    cpu: Past = field(default_factory=Past)
    gpu: Past = field(default_factory=Past)

    def of(self, on_gpu: bool) -> Past:
        """The one that counts for a job."""
        return self.gpu if on_gpu else self.cpu

    def without(self, source: str) -> History:
        """The history before one job of it."""
        return History(self.cpu.without(source), self.gpu.without(source))


def likeness(one: Traits, other: Traits) -> float:
    """Between 0 and 1: the product over the traits."""
    weight = 1.0
    for name, mine in one.items():
        theirs = other.get(name)
        if theirs is None or mine == theirs:
            continue
        if isinstance(mine, str) or isinstance(theirs, str):
            weight *= OTHERWISE[name]
        elif mine > 0 and theirs > 0:
            weight *= math.exp(-0.5 * (math.log(mine / theirs) / REACH[name]) ** 2)
    return weight
