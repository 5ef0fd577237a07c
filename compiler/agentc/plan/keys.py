"""Content keys: what a job's result depends on, as canonical JSON, hashed.

A key is the first 32 hex digits of the SHA-256 of canonical JSON of a tagged, versioned list.
Placement (GPUs, ports, batch splits) and metadata never enter; settings at their defaults never
enter, so that a new field leaves old keys as they are. Keys of every version are pinned by
literal values in `tests/identity`: a change of this module that alters a key is a new version.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentc.backend_api import LeaseDraft
from agentc.ir.module import Inputs
from agentc.kinds.field import Json
from agentc.plan.job import Job, JobBody, Lease, SoftwareLock

SCALARS = frozenset({str, int, bool, type(None)})
"""Types whose values are plain JSON as they are."""
_LISTS = frozenset({list, tuple})
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_text(value: object) -> str:
    """Compact canonical JSON for hashing: sorted keys, no spaces, `3.0` written as `3`, because
    `epochs: 3` and `epochs: 3.0` are one setting.

    Raises TypeError for anything that has no stable JSON form (a set, a path, a number that is
    not finite, a key that is not text), with what it was.
    """
    return _ENCODER.encode(plain_json(value, whole_floats=False))


def text_of_keys(keys: Mapping[str, list[str]] | list[str] | None) -> str:
    """The canonical text of what can only be written in one way."""
    return _ENCODER.encode(keys)


def canonical_list(texts: Iterable[str]) -> str:
    """The canonical text of a list, by those of its items; several may be in one."""
    return f"[{','.join(texts)}]"


@dataclass(frozen=True, slots=True)
class CanonicalTexts:
    """Texts of what many jobs share, each made once."""

    _identities: dict[JobBody | LeaseDraft, str] = field(default_factory=dict)
    _words: dict[tuple[str | int | None, ...], str] = field(default_factory=dict)

    def items(self, *words: str | int | None) -> str:
        """The canonical texts of a few words, for `canonical_list`."""
        if words not in self._words:
            self._words[words] = ",".join(map(canonical_text, words))
        return self._words[words]

    def identity(self, owner: JobBody | LeaseDraft) -> str:
        """`canonical_text` of what a body or a lease adds to keys."""
        known = self._identities.get(owner)
        if known is None:
            known = self._identities[owner] = canonical_text(owner.identity)
        return known


def plain_json(
    value: object,
    *,
    whole_floats: bool = True,
    otherwise: Callable[[object], Json] | None = None,
) -> Json:
    """A deep copy in plain JSON types; tuples become lists. `otherwise` is asked for what is
    none of them. See `canonical_text` for errors."""
    # Exact types first: the abstract ones cost ten times as much, and plans are large.
    kind = type(value)
    if kind in SCALARS:
        return value  # type: ignore[return-value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value!r} has no canonical form")
        whole = not whole_floats and value.is_integer() and abs(value) < 2**53
        return int(value) if whole else value
    if kind is dict or isinstance(value, Mapping):
        result: dict[str, Json] = {}
        for name, item in value.items():  # type: ignore[attr-defined]
            if not isinstance(name, str):
                raise TypeError("a mapping with keys that are not text has no canonical form")
            if type(item) not in SCALARS:
                item = plain_json(item, whole_floats=whole_floats, otherwise=otherwise)
            result[name] = item
        return result
    if kind in _LISTS or (isinstance(value, Sequence) and not isinstance(value, (str, bytes))):
        return [
            item
            if type(item) in SCALARS
            else plain_json(item, whole_floats=whole_floats, otherwise=otherwise)
            for item in value  # type: ignore[attr-defined]
        ]
    if otherwise is not None:
        return otherwise(value)
    raise TypeError(f"a {type(value).__name__} has no canonical form")


KEY_VERSION = 2
DIGITS = 32


def job_key(
    job: Job,
    software: Mapping[str, SoftwareLock],
    producer_keys: Mapping[str, str],
    texts: CanonicalTexts | None = None,
) -> str:
    """The key of a job whose inputs have keys already (`producer_keys`: job id -> key). `texts`
    are those of the jobs before, which share their identities."""
    texts = CanonicalTexts() if texts is None else texts
    draft = job.draft
    inputs = {role: [producer_keys[i] for i in ids] for role, ids in job.inputs.items() if ids}
    lock = software[job.software].sha256
    leases = sorted(job.leases, key=lambda lease: lease.draft.role)
    return _digest_of_text(
        canonical_list(
            [
                texts.items("agentc-key", KEY_VERSION, draft.kind, draft.backend, draft.version),
                texts.items(lock),
                texts.identity(job.body),
                text_of_keys(inputs),
                canonical_list(
                    lease_text(lease, job.inputs, software, producer_keys, texts)
                    for lease in leases
                ),
            ]
        )
    )


def lease_text(
    lease: Lease,
    inputs: Inputs,
    software: Mapping[str, SoftwareLock],
    producer_keys: Mapping[str, str],
    texts: CanonicalTexts,
) -> str:
    """The canonical text of `lease_identity`."""
    head, served = _server_of(lease, inputs, software, producer_keys)
    settings = texts.identity(lease.draft)
    return canonical_list([texts.items(*head), settings, text_of_keys(served)])


def lease_identity(
    lease: Lease,
    inputs: Inputs,
    software: Mapping[str, SoftwareLock],
    producer_keys: Mapping[str, str],
) -> list[Json]:
    """What makes two leases the same server: role, backend, version, software lock, semantic
    settings and the keys of the checkpoint served."""
    head, served = _server_of(lease, inputs, software, producer_keys)
    return [*head, dict(lease.draft.identity), None if served is None else [*served]]


def _server_of(
    lease: Lease,
    inputs: Inputs,
    software: Mapping[str, SoftwareLock],
    producer_keys: Mapping[str, str],
) -> tuple[tuple[str | int | None, ...], list[str] | None]:
    """What a lease starts, but for its settings, and the keys of what it serves."""
    lock = None if lease.software is None else software[lease.software].sha256
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
