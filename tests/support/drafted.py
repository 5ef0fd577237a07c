"""Jobs and leases of a plan, made by hand from what a backend would draft."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from agentc.backend_api import JobDraft, LeaseDraft, SoftwareEnvironment, StageView
from agentc.plan.job import Job, Lease

SOFTWARE = SoftwareEnvironment(name="empty", lock="")
T = TypeVar("T", Job, Lease)


def job_draft(**given: Any) -> JobDraft:
    """A draft that has read no setting."""
    return JobDraft(**{"software": SOFTWARE, "view": StageView(table=(), values={}), **given})


def lease_draft(**given: Any) -> LeaseDraft:
    """The draft of a lease."""
    return LeaseDraft(**{"software": SOFTWARE, **given})


def changed(one: T, **changes: Any) -> T:
    """The same with other values: its own, or those of its draft."""
    own = {field.name for field in fields(one)}
    drafted = {name: value for name, value in changes.items() if name not in own}
    rest = {name: value for name, value in changes.items() if name in own}
    return replace(one, draft=replace(one.draft, **drafted), **rest)
