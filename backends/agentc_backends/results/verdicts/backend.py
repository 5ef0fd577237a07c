"""Declares `verdicts.claims` and lowers its stage, which reads evaluations, to one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import VERDICTS
from agentc.kinds.evaluation import VerdictSettings
from agentc.kinds.field import Json
from agentc_backends.software import LIGHT

PAPERS_OWN = "paper"
"""The scale at which claims are judged; a spec without scales is at it."""


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. Claims name stages, so the names belong to the key, like all of the claims."""
    view = stage.scoped()
    stated = context.claims()
    claims: list[Json] = [dict(claim) for claim in stated]
    judged: list[Json] = list(context.input_names(stage, "of"))
    scale = context.experiment().get("scale")
    reduced = None if scale == PAPERS_OWN else scale
    facts: dict[str, Json] = {"claims": claims, "stages": judged}
    if reduced is not None:
        facts["scale"] = reduced
    if any(claim.get("reach") is not None for claim in stated):
        facts["curves"] = (
            "above their start"  # what counts as reached; other claims keep their keys
        )
    return (
        JobDraft(
            kind="verdicts",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.results.verdicts.job_verdicts"),
            view=view,
            config={
                "claims": claims,
                "stages": judged,
                "scale": reduced,
                **view.config_of(VerdictSettings),
            },
            inputs=dict(stage.inputs),
            produces=VERDICTS.name,
            local=True,
            extra_identity=facts,
        ),
    )


BACKEND = StageBackend(
    id="verdicts.claims",
    kind="verdicts",
    version=4,
    doc="Verdicts by the intervals that the tables show, and the paper's own noise at its own n; "
    "claims against one baseline by Holm's correction.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"difference", "tolerance"}),
)
