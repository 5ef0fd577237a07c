"""MemoryNeed: what a job needs, part by part."""

from __future__ import annotations

import math
from dataclasses import dataclass

GB = 1e9
BASE_BYTES = 0.9e9
"""Main memory of a Python process with torch and a trainer's libraries, before any weight: 0.4 to
0.7 GB of libraries on a CPU, more with CUDA's."""
_SPARE = 1.1
_STEP_MIB = 500
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One summand, in bytes."""

    name: str
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """`parts` are what a GPU (or, without GPUs, each process) holds when it holds most; `host` is
    the main memory of a node with all its processes, `staging` the disk beside the result, all in
    bytes. `share` is how much of a GPU may be used. `cores` are those of a node that processes
    which work with GPUs keep busy; 0 without GPUs, where the number of threads is a setting."""

    parts: tuple[MemoryPart, ...]
    host: float
    staging: float = 0.0
    share: float = 1.0
    cores: int = 0

    @property
    def device(self) -> float:
        """What a GPU, or a process, needs."""
        return math.fsum(part.size for part in self.parts)

    def fits(self, card: float) -> bool:
        """Whether a GPU of so many bytes holds it."""
        return self.device <= self.share * card

    @property
    def host_mib(self) -> int:
        """What to ask a cluster for, with a tenth to spare, in steps of 500 MiB."""
        return math.ceil(self.host * _SPARE / _MIB / _STEP_MIB) * _STEP_MIB

    def sum_text(self) -> str:
        """The sum written out: `27.0 weights + 53.9 Adam = 80.9 GB`."""
        shown = [part for part in self.parts if part.size >= 0.0005 * self.device]
        terms = " + ".join(f"{gigabytes(part.size)} {part.name}" for part in shown)
        return f"{terms} = {gigabytes(self.device)} GB"


def gigabytes(size: float) -> str:
    """A number of GB: `108`, `27.0`, `0.34`."""
    amount = size / GB
    digits = 0 if amount >= 99.95 else 1 if amount >= 1 else 2
    return f"{amount:.{digits}f}"
