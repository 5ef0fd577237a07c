"""What environments say of themselves when they are opened for a moment: how many tasks, and what
an expert's episode is like. For those whose backends state nothing of it; `stated.py` asks.

Neighbour: `measuring.py` runs PROGRAM in the environment's own software.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentc.backend_api import BackendTable, EnvironmentBackend, ExpectedExpert

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


def sounding_of(told: Mapping[str, Any]) -> Sounding:
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
