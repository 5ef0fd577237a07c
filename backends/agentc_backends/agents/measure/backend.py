"""Declares `measure.episodes` and lowers a measure stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import METRICS
from agentc.kinds.field import Field, Json, choice
from agentc_backends.agents.rollout.backend import OPTIONS as ROLLOUT_OPTIONS
from agentc_backends.software import LIGHT

_ACTION_RULES = ("action_span", "action_space", "no_action")

OPTIONS: tuple[Field, ...] = (
    *(option for option in ROLLOUT_OPTIONS if option.name in _ACTION_RULES),
    choice("reply_format", "The prompt's, under which the trajectories were played: with the "
           "others it says what `loops` takes for an action. Nodes of trees have their actions.",
           ("react", "react_inline", "action_only", "text", "tools"), "react"),
)  # fmt: skip


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. The environment is not leased; it says what rewards mean."""
    facts = context.environment_facts(stage)
    config: dict[str, Json] = {
        "answer": stage.text("answer"),
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
    rules = (*_ACTION_RULES, "reply_format")
    if stage.get("loops") is None:
        for name in rules:
            stage.leave(name, "actions are read for `loops` alone")
        return asked
    asked["loops"] = {
        "times": stage.integer("loops.times"),
        "longest": stage.integer("loops.longest"),
        **{name: stage.text(name) for name in rules},
    }
    return asked


BACKEND = StageBackend(
    id="measure.episodes",
    kind="measure",
    version=1,
    doc="Mean reward and success of recorded episodes, or of the answers that searches chose, with "
    "intervals over tasks.",
    software=LIGHT,
    lower=lower,
    options=OPTIONS,
)
