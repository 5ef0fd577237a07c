"""Declares `evaluate.agent`: an evaluation is a rollout, equal to that of a rollout stage with the
same settings (and sharing its result), and a small job that computes the metrics."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.ir.artifacts import METRICS
from agentc.kinds.field import Json
from agentc_backends.rollout_react.backend import OPTIONS, rollout_job
from agentc_backends.software import LIGHT

_PROTOCOL = (
    "attempts",
    "decode",
    "max_turns",
    "on_invalid",
    "on_overflow",
    "prompt_seed",
    "prompt_per_attempt",
)
"""Settings of a rollout that change what is measured: metrics.json has them, so that a comparison
can say where they differ."""


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """Two jobs: `rollout` and the metrics."""
    rollout = rollout_job(stage, context, name="rollout")
    view = stage.scoped()
    facts = context.environment_facts(view)
    config: dict[str, Json] = {
        "success_at": view.get("success_at"),
        "confidence": view.number("confidence"),
        "split": rollout.config["split"],
        "environment": facts["name"],
        "reward_range": facts["reward_range"],
        "protocol": {name: rollout.config[name] for name in _PROTOCOL},
    }
    metrics = JobDraft(
        kind="evaluate",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=("-m", "agentc_backends.evaluate_agent.job_evaluate"),
        view=view,
        config=config,
        inputs={"rollouts": (":rollout",)},
        produces=METRICS.name,
    )
    return (rollout, metrics)


BACKEND = StageBackend(
    id="evaluate.agent",
    kind="evaluate",
    version=2,
    doc="Mean reward and success of a policy on a split, with intervals over tasks; infrastructure "
    "errors are counted and left out.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"react", "react_inline", "action_only"}),
    options=OPTIONS,
)
