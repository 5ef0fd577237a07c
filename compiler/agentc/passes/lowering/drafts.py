"""What the drafts of a stage hold: the leases of each job, its software, whether it has a model on
GPUs of its own. Whoever else lowers asks here, and has no lease in hand.

`SharedParts` keeps equal parts once for a whole plan: rounds and cells of a sweep repeat their jobs
but for names and seeds, and keys, plan.json and estimates are made of each part once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter, is_
from typing import TypeVar

from agentc.backend_api import JobDraft, LeaseDraft, SoftwareEnvironment
from agentc.kinds.field import Json
from agentc.kinds.groups import TRAINERS
from agentc.plan.job import Lease, Resources
from agentc.runtime.lease_roles import is_model_server
from agentc.runtime.machine.device_shares import DeviceTaker

_PARTS = attrgetter(*(each.name for each in fields(LeaseDraft)))
_T = TypeVar("_T", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What was met first of each; parts count as equal that would be written alike."""

    _values: dict[str, Mapping[str, object]] = field(default_factory=dict)
    _met: dict[int, tuple[object, Mapping[str, object]]] = field(default_factory=dict)
    _identities: dict[tuple[int, int], Mapping[str, Json]] = field(default_factory=dict)
    _leases: dict[tuple[str, ...], list[Lease]] = field(default_factory=dict)
    _resources: dict[Resources, Resources] = field(default_factory=dict)

    def value(self, part: _T) -> _T:
        """A part of a draft that becomes JSON."""
        known = self._met.get(id(part))
        if known is None:  # holding the part keeps its id its own
            # By its text: 1 and 1.0 are equal, and are written differently.
            known = self._met[id(part)] = (part, self._values.setdefault(repr(part), part))
        return known[1]  # type: ignore[return-value]

    def identity(self, draft: JobDraft) -> Mapping[str, Json]:
        """The identity of a job: the settings that it read, and the facts that it adds."""
        settings, facts = draft.view.shared_identity(), self.value(draft.extra_identity)
        # Views keep the settings, this object the facts, so that their ids stay their own.
        key = (id(settings), id(facts))
        if key not in self._identities:
            self._identities[key] = {"settings": dict(settings), "facts": dict(facts)}
        return self._identities[key]

    def leases(
        self, draft: JobDraft, named: Callable[[SoftwareEnvironment], str]
    ) -> tuple[Lease, ...]:
        """The leases of a job as a plan has them; `named` is what it calls their software."""
        return tuple(
            self._lease(each, None if each.software is None else named(each.software))
            for each in draft.leases
        )

    def _lease(self, draft: LeaseDraft, environment: str | None) -> Lease:
        alike = self._leases.setdefault((draft.role, draft.backend, draft.entry, draft.port), [])
        for known in alike:
            if known.environment == environment and all(
                map(is_, _PARTS(known.draft), _PARTS(draft))
            ):
                return known
        alike.append(Lease(draft=draft, environment=environment))
        return alike[-1]

    def resources(self, asked: Resources) -> Resources:
        """What a job asks of the machine."""
        return self._resources.setdefault(asked, asked)


def software_needed(draft: JobDraft) -> tuple[SoftwareEnvironment, ...]:
    """That of a job's program first, then that of its servers."""
    leased = (lease.software for lease in draft.leases)
    return (draft.software, *(each for each in leased if each is not None))


def served_roles(draft: JobDraft) -> tuple[str, ...]:
    """The inputs whose checkpoints the leases of a job serve."""
    return tuple(lease.input for lease in draft.leases if lease.input is not None)


def holds_model(draft: JobDraft) -> bool:
    """Whether the job trains a model, or starts a server of one within its own resources."""
    return draft.kind in TRAINERS or any(map(is_own_model, draft.leases))


def is_own_model(lease: LeaseDraft) -> bool:
    """Whether a lease means a model server within the job's own resources."""
    return is_model_server(lease.role) and lease.port != "none" and lease.scope != "shared"


def taker_of(lease: LeaseDraft) -> DeviceTaker:
    """What a lease says of the GPUs that its server takes."""
    return DeviceTaker(lease.role, lease.backend, lease.devices, lease.copies)


def look_through(drafts: tuple[JobDraft, ...], seen: dict[int, object]) -> None:
    """Look at all that drafts hold besides their inputs, so that ids handed on elsewhere count.
    `seen` are what leases held that were looked at before."""
    for draft in drafts:
        for name in _OF_JOBS:
            repr(getattr(draft, name))
        for lease in draft.leases:
            for value in _OF_LEASES(lease):
                if id(value) not in seen:  # holding it keeps its id its own
                    seen[id(value)] = value
                    repr(value)


_ASIDE = frozenset({"inputs", "view", "leases", "software"})
"""Looked at by themselves, or made by nobody's lowering."""
_OF_JOBS = tuple(each.name for each in fields(JobDraft) if each.name not in _ASIDE)
_OF_LEASES = attrgetter(*(each.name for each in fields(LeaseDraft) if each.name not in _ASIDE))
