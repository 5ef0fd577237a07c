"""Declares `measure.episodes` and lowers a measure stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import METRICS
from agentc.kinds.evaluation import Loops, SearchAnswer
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc.program.settings import declared_in
from agentc_backends.agents.measure.settings import MeasureOptions
from agentc_backends.software import LIGHT


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. The environment is not leased; it says what rewards mean."""
    facts = context.environment_facts(stage)
    config: dict[str, Json] = {
        **stage.config_of(SearchAnswer),
        "success_at": stage.get("success_at"),
        "confidence": stage.number("confidence"),
        "environment": facts["name"],
        "reward_range": facts["reward_range"],
        "success": facts["success_at"],
    }
    config |= _extra_metrics(stage)
    if "reward_name" in facts:
        config["reward_name"] = facts["reward_name"]
    return (
        JobDraft(
            kind="measure",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.measure.job_measure"),
            view=stage,
            config=config,
            inputs={"of": stage.inputs["of"]},
            produces=METRICS.name,
            local=True,
            extra_identity={
                "measured_in": {n: facts[n] for n in ("name", "reward_range", "success_at")}
            },
        ),
    )


def _extra_metrics(stage: StageView) -> dict[str, Json]:
    """What is measured besides reward and success."""
    asked: dict[str, Json] = {}
    draws = stage.get("best_of")
    if isinstance(draws, list) and draws:
        asked["best_of"] = draws
    if stage.get("loops") is None:
        because = "actions are read only for `loops`"
        stage.config_of(MeasureOptions, without=dict.fromkeys(_RULES, because))
    else:
        asked["loops"] = stage.config_of(Loops, "loops") | stage.config_of(MeasureOptions)
    return asked


_RULES = [each.name for each in declared_in(MeasureOptions)]

BACKEND = StageBackend(
    id="measure.episodes",
    kind="measure",
    version=1,
    doc="Mean reward and success of recorded episodes, or of the answers that searches chose, with "
    "intervals over tasks.",
    software=LIGHT,
    lower=lower,
    options=fields_of(MeasureOptions),
)
