"""Declares `expert.planner` and lowers an expert stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import TRAJECTORIES
from agentc.kinds.field import Json
from agentc.kinds.interaction import ExpertSettings
from agentc_backends.agents.common.lowering import (
    check_split,
    environment_leases,
    marks_actions,
    prompt_config,
    prompt_identity,
)
from agentc_backends.software import LIGHT


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job that leases the environment alone."""
    view = stage.scoped()
    facts = context.environment_facts(view)
    prompt = context.prompt(view)
    thinks = marks_actions(prompt) or (
        prompt is not None and (prompt.output_marker is not None or prompt.reply_format == "tools")
    )
    without: dict[str, str] = {}
    if prompt is not None and not thinks:
        reply_format = f"`reply_format: {prompt.reply_format}`"
        without["thoughts"] = f"the prompt's {reply_format} has no place for a thought"
    check_split(view, facts["splits"])
    config: dict[str, Json] = {
        "thoughts": False,
        **view.config_of(ExpertSettings, placement=False, without=without),
        "prompt": prompt_config(prompt),
        "reward_range": facts["reward_range"],
        "success_at": facts["success_at"],
    }
    return (
        JobDraft(
            kind="expert",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.expert.job_expert"),
            view=view,
            config=config,
            inputs={},
            produces=TRAJECTORIES.name,
            leases=environment_leases(view, context),
            extra_identity={"prompt": prompt_identity(prompt)},
            contract={"reward_range": facts["reward_range"]},
        ),
    )


BACKEND = StageBackend(
    id="expert.planner",
    kind="expert",
    version=1,
    doc="Replays the plans of an environment that has an expert (`/expert`), and records what the "
    "environment answers.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"expert", "thoughts", "tools"}),
)
