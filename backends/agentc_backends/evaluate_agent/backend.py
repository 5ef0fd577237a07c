"""Declares `evaluate.agent`: an evaluation is a rollout, equal to that of a rollout stage with the
same settings (and sharing its result), and a small job that computes the metrics."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.ir.artifacts import METRICS
from agentc.kinds.field import Json
from agentc_backends.rollout_react.backend import OPTIONS, rollout_job
from agentc_backends.software import LIGHT


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """Two jobs: `rollout` and the metrics."""
    rollout = rollout_job(stage, context, name="rollout")
    view = stage.scoped()
    interval = view.text("interval")
    if interval != "bootstrap":
        view.leave("resamples", f"`interval: {interval}` draws no resamples")
    config: dict[str, Json] = {
        "success_at": view.get("success_at"),
        "confidence": view.number("confidence"),
        "interval": interval,
        "resamples": view.integer("resamples") if interval == "bootstrap" else 0,
        "split": rollout.config["split"],
        "environment": context.environment_facts(view)["name"],
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
    version=1,
    doc="Mean reward and success of a policy on a split, with intervals over tasks; infrastructure "
    "errors are counted and left out.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"bootstrap", "normal", "react", "react_inline", "action_only"}),
    options=OPTIONS,
)
