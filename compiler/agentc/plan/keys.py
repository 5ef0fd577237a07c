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
from agentc.plan.canonical import CanonicalTexts, canonical_list, canonical_text, text_of_keys
from agentc.plan.job import EnvLock, Job, Lease

KEY_VERSION = 1
DIGITS = 32


def job_key(
    job: Job,
    environments: Mapping[str, EnvLock],
    producer_keys: Mapping[str, str],
    texts: CanonicalTexts | None = None,
) -> str:
    """The key of a job whose inputs have keys already (`producer_keys`: job id -> key). `texts`
    are those of the jobs before, which share their identities."""
    texts = CanonicalTexts() if texts is None else texts
    draft = job.draft
    inputs = {role: [producer_keys[i] for i in ids] for role, ids in draft.inputs.items() if ids}
    lock = environments[job.environment].sha256
    leases = sorted(job.leases, key=lambda lease: lease.draft.role)
    return _digest_of_text(
        canonical_list(
            [
                texts.items("agentc-key", KEY_VERSION, draft.kind, draft.backend, draft.version),
                texts.items(lock),
                texts.of(job.identity),
                text_of_keys(inputs),
                canonical_list(
                    lease_text(lease, draft.inputs, environments, producer_keys, texts)
                    for lease in leases
                ),
            ]
        )
    )


def lease_text(
    lease: Lease,
    inputs: Mapping[str, tuple[str, ...]],
    environments: Mapping[str, EnvLock],
    producer_keys: Mapping[str, str],
    texts: CanonicalTexts,
) -> str:
    """The canonical text of `lease_identity`."""
    head, served = _server_of(lease, inputs, environments, producer_keys)
    settings = texts.of(lease.draft.identity)
    return canonical_list([texts.items(*head), settings, text_of_keys(served)])


def lease_identity(
    lease: Lease,
    inputs: Mapping[str, tuple[str, ...]],
    environments: Mapping[str, EnvLock],
    producer_keys: Mapping[str, str],
) -> list[Json]:
    """What makes two leases the same server: role, backend, version, environment lock, semantic
    settings and the keys of the checkpoint served."""
    head, served = _server_of(lease, inputs, environments, producer_keys)
    return [*head, dict(lease.draft.identity), None if served is None else [*served]]


def _server_of(
    lease: Lease,
    inputs: Mapping[str, tuple[str, ...]],
    environments: Mapping[str, EnvLock],
    producer_keys: Mapping[str, str],
) -> tuple[tuple[str | int | None, ...], list[str] | None]:
    """What a lease starts, but for its settings, and the keys of what it serves."""
    lock = None if lease.environment is None else environments[lease.environment].sha256
    name = lease.draft.input
    served = None if name is None else [producer_keys[i] for i in inputs[name]]
    return (lease.draft.role, lease.draft.backend, lease.draft.version, lock), served


def session_key(member_keys: list[str]) -> str:
    """The key of a fused group: a function of its members' keys, in any order."""
    return digest(["agentc-session", KEY_VERSION, sorted(member_keys)])


def server_key(makes: list[Json]) -> str:
    """The key of a shared server, from all that makes one the same as another."""
    return digest(["agentc-server", KEY_VERSION, makes])


def digest(value: object) -> str:
    """First 32 hex digits of the SHA-256 of the canonical text."""
    return _digest_of_text(canonical_text(value))


def _digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:DIGITS]
