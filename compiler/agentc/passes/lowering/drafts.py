"""Equal parts of drafts, kept once for a whole plan: rounds and cells of a sweep repeat their jobs
but for names and seeds, and keys, plan.json and estimates are made of each part once.

Neighbour: `leases.py`, which does so for leases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from agentc.backend_api import JobDraft
from agentc.kinds.field import Json
from agentc.plan.job import Resources

_T = TypeVar("_T", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What was met first of each; parts count as equal that would be written alike."""

    _values: dict[str, Mapping[str, object]] = field(default_factory=dict)
    _met: dict[int, tuple[object, Mapping[str, object]]] = field(default_factory=dict)
    _identities: dict[tuple[int, int], Mapping[str, Json]] = field(default_factory=dict)
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

    def resources(self, asked: Resources) -> Resources:
        """What a job asks of the machine."""
        return self._resources.setdefault(asked, asked)


def look_through(drafts: tuple[JobDraft, ...]) -> None:
    """Look at all that drafts hold besides their inputs, so that ids handed on elsewhere count;
    leases are looked at where they are made (`ModuleLeases.look_through`)."""
    for draft in drafts:
        for name in _OF_JOBS:
            repr(getattr(draft, name))


_ASIDE = frozenset({"inputs", "view", "leases", "software"})
"""Looked at by themselves, or made by nobody's lowering."""
_OF_JOBS = tuple(each.name for each in fields(JobDraft) if each.name not in _ASIDE)
