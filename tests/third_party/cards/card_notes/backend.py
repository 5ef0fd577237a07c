"""Declares `dataset.cards`: its job notes when it begins and ends, and which GPUs it sees."""

from agentc.backend_api import JobDraft, LowerContext, Software, StageBackend, StageView
from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.field import integer

CARDS = Software(name="cards", lock="# Nothing beyond the standard library.\n")


def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job."""
    return (
        JobDraft(
            kind="dataset",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=CARDS,
            program=("-m", "card_notes.job_note"),
            view=view,
            config={"together": view.integer("together"), "seed": view.integer("seed")},
            inputs={},
            produces=SFT_DATASET.name,
        ),
    )


BACKEND = StageBackend(
    id="dataset.cards",
    kind="dataset",
    version=1,
    doc="Rows that say which GPUs their job saw.",
    software=CARDS,
    lower=lower,
    options=(integer("together", "Continue once N jobs that wait like this one have started.", 0),),
)
