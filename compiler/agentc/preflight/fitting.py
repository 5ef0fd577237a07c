"""Whether a partition has nodes with everything that a job asks for of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentc.placement import ResolvedRequest
from agentc.preflight.finding import PreflightFinding, named, problem, warning
from agentc.preflight.slurm_facts import Nodes, Partition

_Fits: TypeAlias = Callable[[Nodes], bool]
_Has: TypeAlias = Callable[[Sequence[Nodes]], str]


def on_nodes(job: ResolvedRequest, partition: Partition, nodes: int) -> Iterator[PreflightFinding]:
    """Whether there are nodes that have all of it."""
    asked = _Ask.of(job, nodes)
    left: Sequence[Nodes] = partition.nodes
    for check, what, fits, has, name in asked.tests():
        fitting = [each for each in left if fits(each)]
        if not fitting:
            best = has(left)
            yield problem(
                check,
                f"no node of `{partition.name}` has {what} ({job.placed[name].source})"
                + (f"; {best}" if best else ""),
                f"change {setting_place(job, name)}",
            )
            return
        left = fitting
    count = sum(each.count for each in left)
    if count < nodes:
        yield problem(
            "nodes",
            f"{nodes} nodes are asked for ({job.placed['nodes'].source}), and `{partition.name}` "
            f"has {count} that fit",
        )
        return
    working = sum(each.count for each in left if each.works)
    if working < nodes:
        states = ", ".join(sorted({each.state for each in left if not each.works}))
        yield warning(
            "nodes",
            f"of the {count} nodes of `{partition.name}` that fit, {working} can take jobs now "
            f"(the others: {states})",
            "`sinfo -R` says why",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What each node has to have."""

    cpus: int
    memory: int
    gpus: int
    kind: str | None
    features: str | None

    @classmethod
    def of(cls, job: ResolvedRequest, nodes: int) -> _Ask:
        gpus = -(-(job.number("gpus") or 0) // nodes)
        return cls(
            cpus=job.number("cpus") or 1,
            memory=job.number("mem_mb") or 0,
            gpus=gpus,
            kind=job.word("gpu_type") if gpus else None,
            features=job.word("constraint"),
        )

    def tests(self) -> Iterator[tuple[str, str, _Fits, _Has, str]]:
        """Each: the check, what is asked in words, whether nodes have it, what they have instead,
        the name of the setting. Impossible ones first told."""
        if self.features:
            text = self.features
            yield (
                "constraint",
                f"the features `{text}`",
                lambda each: fulfils(text, each.features),
                _features,
                "constraint",
            )
        if self.gpus and self.kind:
            kind = self.kind
            yield (
                "gpus",
                f"GPUs of type `{kind}`",
                lambda each: kind in each.gpus,
                _gpu_types,
                "gpu_type",
            )
        if self.gpus:
            wanted = self.gpus
            yield (
                "gpus",
                f"{wanted} GPUs",
                lambda each: self._gpus_of(each) >= wanted,
                lambda left: _most("GPUs", (self._gpus_of(each) for each in left)),
                "gpus",
            )
        yield (
            "cpus",
            f"{self.cpus} cores",
            lambda each: each.cpus >= self.cpus,
            lambda left: _most("cores", (each.cpus for each in left)),
            "cpus",
        )
        if self.memory:
            yield (
                "memory",
                f"{self.memory} MiB",
                lambda each: each.memory_mb >= self.memory,
                lambda left: _most("MiB", (each.memory_mb for each in left)),
                "mem_mb",
            )

    def _gpus_of(self, nodes: Nodes) -> int:
        return nodes.gpus.get(self.kind, 0) if self.kind else sum(nodes.gpus.values())


def fulfils(constraint: str, features: frozenset[str]) -> bool:
    """Whether features satisfy `a&b`, `a|b`; of what is more involved (`[a|b]`, `a*2`, brackets)
    only that some word of it is there."""
    words = re.findall(r"[A-Za-z0-9_.-]+", constraint)
    if re.search(r"[\[\]()*]", constraint):
        return any(word in features for word in words)
    return any(
        all(word.strip() in features for word in re.split(r"[&,]", part))
        for part in constraint.split("|")
    )


def setting_place(job: ResolvedRequest, name: str) -> str:
    """Where people change a setting."""
    source = job.placed[name].source
    if source.startswith(("set-resources", "set-threads", "default-resources", "slurm-")):
        return f"`{source}` of the profile"
    return f"`placement: {{{name}: ...}}` of the spec, or set-resources of the profile"


def _most(unit: str, amounts: Iterable[int]) -> str:
    return f"the largest has {max(amounts, default=0)} {unit}"


def _features(left: Sequence[Nodes]) -> str:
    there = sorted({name for each in left for name in each.features})
    return f"there are {named(there)}" if there else "its nodes have none"


def _gpu_types(left: Sequence[Nodes]) -> str:
    there = sorted({name or "(no type)" for each in left for name in each.gpus})
    return f"there are {named(there)}" if there else "its nodes have none"
