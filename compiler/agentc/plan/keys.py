"""Content keys: what a job's result depends on, hashed.

A key is the first 32 hex digits of the SHA-256 of canonical JSON of a tagged, versioned list.
Placement (GPUs, ports, batch splits) and metadata never enter; settings at their defaults never
enter, so that a new field leaves old keys as they are. Keys of every version are pinned by
literal values in `tests/identity`: a change of this module that alters a key is a new version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from agentc.kinds.field import Json
from agentc.plan.canonical import canonical_text
from agentc.plan.job import EnvLock, Job, Lease

KEY_VERSION = 1
DIGITS = 32


def job_key(job: Job, environments: Mapping[str, EnvLock], producer_keys: Mapping[str, str]) -> str:
    """The key of a job whose inputs have keys already (`producer_keys`: job id -> key)."""
    return digest(
        [
            "agentc-key",
            KEY_VERSION,
            job.kind,
            job.backend,
            job.version,
            environments[job.environment].sha256,
            job.identity,
            {role: [producer_keys[i] for i in ids] for role, ids in job.inputs.items() if ids},
            [
                lease_identity(lease, job.inputs, environments, producer_keys)
                for lease in sorted(job.leases, key=lambda lease: lease.role)
            ],
        ]
    )


def lease_identity(
    lease: Lease,
    inputs: Mapping[str, tuple[str, ...]],
    environments: Mapping[str, EnvLock],
    producer_keys: Mapping[str, str],
) -> list[Json]:
    """What makes two leases the same server: role, backend, version, environment lock, semantic
    settings and the keys of the checkpoint served."""
    lock = None if lease.environment is None else environments[lease.environment].sha256
    served = None if lease.input is None else [producer_keys[i] for i in inputs[lease.input]]
    return [
        lease.role,
        lease.backend,
        lease.version,
        lock,
        dict(lease.identity),
        list(served) if served is not None else None,
    ]


def session_key(member_keys: list[str]) -> str:
    """The key of a fused group: a function of its members' keys, in any order."""
    return digest(["agentc-session", KEY_VERSION, sorted(member_keys)])


def server_key(makes: list[Json]) -> str:
    """The key of a shared server, from all that makes one the same as another."""
    return digest(["agentc-server", KEY_VERSION, makes])


def digest(value: object) -> str:
    """First 32 hex digits of the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical_text(value).encode("utf-8")).hexdigest()[:DIGITS]
