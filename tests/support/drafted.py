"""Jobs and leases of a plan, made by hand from what a backend would draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from agentc.backend_api import JobDraft, LeaseDraft, Software, StageView
from agentc.plan.job import Job, JobBody, Lease

SOFTWARE = Software(name="empty", lock="")
T = TypeVar("T", Job, Lease)


def job_draft(**given: Any) -> JobDraft:
    """A draft that has read no setting."""
    return JobDraft(**{"software": SOFTWARE, "view": StageView(table=(), values={}), **given})


def lease_draft(**given: Any) -> LeaseDraft:
    """The draft of a lease."""
    return LeaseDraft(**{"software": SOFTWARE, **given})


def changed(one: T, **changes: Any) -> T:
    """The same with other values: its own, those of its body, or those of its draft."""
    if isinstance(one, Job):
        own, inner = _split(one, changes)
        of_body, drafted = _split(one.body, inner)
        body = replace(one.body, draft=replace(one.draft, **drafted), **of_body)
        return replace(one, body=body, **own)
    own, drafted = _split(one, changes)
    return replace(one, draft=replace(one.draft, **drafted), **own)


def _split(one: Job | JobBody | Lease, changes: Mapping[str, Any]) -> tuple[Any, Any]:
    """The changes of its own fields, and the others."""
    names = {field.name for field in fields(one)}
    own = {name: value for name, value in changes.items() if name in names}
    return own, {name: value for name, value in changes.items() if name not in names}
