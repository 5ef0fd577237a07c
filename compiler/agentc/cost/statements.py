"""What backends state of themselves for estimates, and what an environment states when it is opened
for a moment: how many tasks, and how long its texts are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentc.backend_api import BackendTable, EnvironmentBackend, ExpectedExpert, StageBackend
from agentc.cost.quantities import Quantity

PROGRAM = "agentc_backends.environments.server.sounding"
_FACTOR = 1.3
"""How many times more the mean of all tasks may be than that of those that were played."""
_MESSAGE = 20
"""What a chat format puts around a message, in characters of common text (about five tokens)."""


@dataclass(frozen=True, slots=True)
class Sounding:
    """Tasks by split; an expert's episode on average, None where there is no expert."""

    tasks: Mapping[str, int]
    expert: ExpectedExpert | None


def name_of(backend: str, identity: str) -> str:
    """What tells one environment from another, of plans and of manifests: `identity` is JSON."""
    return f"{backend} {identity}"


def to_sound(
    document: Mapping[str, Any], table: BackendTable
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Environments of a plan that may be opened and whose backends do not state their tasks and
    their expert, each once, with a lease. One that asks a model, or has a secret, is none."""
    stated = {
        each.id: each.expected_tasks is not None and each.expected_expert is not None
        for each in table.environments()
        if isinstance(each, EnvironmentBackend)
    }
    seen: set[str] = set()
    for job in document["jobs"]:
        for lease in job["leases"]:
            if lease["role"] != "environment" or stated.get(str(lease["backend"]), False):
                continue
            identity = json.dumps(lease["identity"], sort_keys=True) if lease["identity"] else "{}"
            name = name_of(str(lease["backend"]), identity)
            if name in seen or lease.get("secrets") or lease.get("needs") or lease.get("url"):
                continue
            seen.add(name)
            yield name, lease


def read_sounding(told: Mapping[str, Any]) -> Sounding:
    """What PROGRAM wrote. Raises ValueError, KeyError or TypeError for what cannot be."""
    expert = told["expert"]
    return Sounding(
        tasks={str(split): int(count) for split, count in told["tasks"].items()},
        expert=None
        if expert is None
        else ExpectedExpert(
            turns=float(expert["turns"]),
            prompt=float(expert["prompt"]) + _MESSAGE,
            reply=float(expert["reply"]) + _MESSAGE,
            observation=float(expert["observation"]) + _MESSAGE,
            factor=_FACTOR,
        ),
    )


# What backends state of themselves for estimates. Environments: numbers of tasks, length of an
# expert's episode, step limits; trainers: the width of what they write. Read by workload.py.

_USUAL_TURNS = 30
_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}


HALVES = "bfloat16_weights"
"""The capability of a trainer that keeps and writes its weights in bfloat16."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The declarations, by the id of the backend; none is known to an empty one. `halving`
    trainers write their weights in 16 bits."""

    environments: Mapping[str, EnvironmentBackend] = field(default_factory=dict)
    halving: frozenset[str] = frozenset()
    sounded: Mapping[str, Sounding] = field(default_factory=dict)
    """What environments told of themselves when they were opened, by `sounding.name_of`."""

    @classmethod
    def of(
        cls, table: BackendTable | None, sounded: Mapping[str, Sounding] | None = None
    ) -> Stated:
        """What the installed backends state."""
        if table is None:
            return cls(sounded=sounded or {})
        halving = (b.id for b in table if isinstance(b, StageBackend) and HALVES in b.capabilities)
        known = {each.id: each for each in table.environments()}
        return cls(known, frozenset(halving), sounded or {})

    def weight_bytes(self, backend: str, adapters: bool, save_dtype: object) -> int:
        """Bytes of a weight in the checkpoint that a training leaves, where its `save_dtype` says
        nothing of it; adapters are merged into float32 weights."""
        if isinstance(save_dtype, str) and save_dtype in _WIDTHS:
            return _WIDTHS[save_dtype]
        return 2 if backend in self.halving and not adapters else 4

    def tasks(self, backend: str, identity: str, split: str) -> Quantity | None:
        """Tasks of a split of an environment with this identity (JSON), where it is stated."""
        told = self.sounded.get(name_of(backend, identity))
        if told is not None and split in told.tasks:
            return Quantity(float(told.tasks[split]))
        declared = self.environments.get(backend)
        if declared is None or declared.expected_tasks is None:
            return None
        try:
            median, factor = declared.expected_tasks(json.loads(identity))[split]
        except (KeyError, TypeError, ValueError):
            return None
        return Quantity.between(float(median), max(1.0, float(factor)))

    def expert(self, backend: str, identity: str) -> ExpectedExpert | None:
        """What an expert's episode is like, where it is stated."""
        told = self.sounded.get(name_of(backend, identity))
        if told is not None and told.expert is not None:
            return told.expert
        declared = self.environments.get(backend)
        if declared is None or declared.expected_expert is None:
            return None
        try:
            return declared.expected_expert(json.loads(identity))
        except (KeyError, TypeError, ValueError):
            return None

    def max_turns(self, backend: str) -> int:
        """The step limit of episodes."""
        declared = self.environments.get(backend)
        return _USUAL_TURNS if declared is None else declared.max_turns
