"""`dataset.counted` and `mix.counted`: they note in a journal what they compute, once a unit."""

from __future__ import annotations

from agentc.backend_api import (
    JobDraft,
    LowerContext,
    Software,
    StageBackend,
    StageView,
)
from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.field import integer, number, string

EMPTY = Software(name="empty", lock="# a stack without packages\n")
OPTIONS = (
    string("journal", "Where each unit of work is noted.", ""),
    integer("units", "Units of work.", 2, minimum=1),
    number("delay", "Seconds a unit.", 0.0, minimum=0),
)


def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job."""
    shares = [view.number("general_share"), view.text("share_of")] if view.kind == "mix" else []
    return (
        JobDraft(
            kind=view.kind,
            backend=f"{view.kind}.counted",
            version=1,
            software=EMPTY,
            program=("-m", "counted_agents.job_count"),
            view=view,
            config={
                "journal": view.text("journal"),
                "units": view.integer("units"),
                "delay": view.number("delay"),
                "of": ["conversations", *shares],
            },
            inputs=dict(view.inputs),
            produces=SFT_DATASET.name,
        ),
    )


def _backend(kind: str) -> StageBackend:
    return StageBackend(
        id=f"{kind}.counted",
        kind=kind,
        version=1,
        doc="Notes each unit of its work in a journal.",
        software=EMPTY,
        lower=lower,
        options=OPTIONS,
    )


DATASET = _backend("dataset")
MIX = _backend("mix")
