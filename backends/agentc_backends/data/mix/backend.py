"""Declares `mix.share` and lowers a mix stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.models import MixSettings
from agentc_backends.software import LIGHT


def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job."""
    share, of = view.number("general_share"), view.text("share_of")
    if of == "total" and share >= 1:
        view.refuse(
            "general_share",
            f"a share of {share:g} of the total leaves no place for agent rows, all of which are "
            "kept",
            fix="set a share below 1, or `share_of: agent`",
        )
    return (
        JobDraft(
            kind="mix",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.data.mix.job_mix"),
            view=view,
            config=view.config_of(MixSettings),
            inputs=view.inputs,
            produces=SFT_DATASET.name,
            local=True,
        ),
    )


BACKEND = StageBackend(
    id="mix.share",
    kind="mix",
    version=1,
    doc="All agent rows and as many general ones as make the stated share, exactly.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"share_of_total", "share_of_agent"}),
)
