"""Declares `pick.checkpoint` and lowers a checkpoint stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import CHECKPOINT
from agentc.kinds.reinforcement import CheckpointSettings
from agentc_backends.software import LIGHT


def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job."""
    return (
        JobDraft(
            kind="checkpoint",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.data.pick.job_pick"),
            view=view,
            config=view.config_of(CheckpointSettings),
            inputs=view.inputs,
            produces=CHECKPOINT.name,
        ),
    )


BACKEND = StageBackend(
    id="pick.checkpoint",
    kind="checkpoint",
    version=1,
    doc="The policy after an iteration that the run was asked to keep, or at its end.",
    software=LIGHT,
    lower=lower,
)
