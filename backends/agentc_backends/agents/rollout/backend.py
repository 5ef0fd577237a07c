"""Declares `rollout.react` and lowers a rollout stage to its one job.

`rollout_job` also serves `evaluate.agent`: an evaluation's episodes have the key of an equal
rollout stage, so that the two share them.
"""

from __future__ import annotations

from agentc.backend_api import JobDraft, LeaseDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import TRAJECTORIES
from agentc.kinds.interaction import RepeatedEpisodes, RolloutSettings
from agentc.kinds.settings import fields_of
from agentc.lease_roles import LeaseRole
from agentc_backends.agents.common.lowering import (
    action_config,
    check_prefix,
    environment_leases,
    episode_config,
    placement_of,
    prompt_identity,
)
from agentc_backends.agents.common.settings import PromptSeeds, RolloutOptions
from agentc_backends.software import LIGHT

_SCORERS: tuple[LeaseRole, ...] = ("critic", "reference")
"""The inputs that choose one of several candidates; each is a model."""
_HIDDEN = "privileged"
_TELLING = frozenset({"logprobs", "token_ids", "scoring"})

ID = "rollout.react"
VERSION = 2

OPTIONS = fields_of(RolloutOptions)


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job that plays the episodes."""
    return (rollout_job(stage, context, name=""),)


def rollout_job(stage: StageView, context: LowerContext, *, name: str) -> JobDraft:
    """The job that lets the checkpoint of role `model` act, reading through a view of its own."""
    view = stage.scoped()
    facts = context.environment_facts(view)
    prompt = context.prompt(view)
    config = {
        **episode_config(view, facts, prompt, RepeatedEpisodes),
        **view.config_of(PromptSeeds),
        **action_config(view, prompt),
    }
    inputs = {"model": stage.inputs["model"]}
    if prefixes := stage.inputs.get("prefixes", ()):
        inputs["prefixes"] = prefixes
        check_prefix(view)
    candidates = view.integer("candidates")
    scorers: tuple[LeaseDraft, ...] = ()
    if candidates > 1 and stage.inputs.get("critic"):
        config["candidates"] = candidates
        inputs |= {
            role: stage.inputs[role] for role in (*_SCORERS, _HIDDEN) if stage.inputs.get(role)
        }
        scorers = _scorers(view, context)
    else:
        for role in (*_SCORERS, _HIDDEN):
            view.leave(role, "with 1 candidate for each turn there is nothing to choose")
    return JobDraft(
        name=name,
        kind="rollout",
        backend=ID,
        version=VERSION,
        software=LIGHT,
        program=("-m", "agentc_backends.agents.rollout.job_rollout"),
        view=view,
        config=config,
        placement=placement_of(view, RolloutSettings) | placement_of(view, RolloutOptions),
        inputs=inputs,
        produces=TRAJECTORIES.name,
        leases=(
            context.server_lease(view, "model"),
            *environment_leases(view, context),
            *scorers,
        ),
        extra_identity={"prompt": prompt_identity(prompt)},
        contract={"reward_range": facts["reward_range"]},
        resume=True,
    )


def _scorers(view: StageView, context: LowerContext) -> tuple[LeaseDraft, ...]:
    """The leases of who compares candidates. A reference that is the policy needs none: the
    policy's server says the same."""
    server = context.server_lease(view, "model")
    if not server.capabilities >= _TELLING:
        view.refuse(
            "server",
            f"{server.backend} does not return the tokens of its replies, or nothing of tokens "
            "that it is given, without which no critic can choose among candidates",
            fix="name a server that loads the models itself: `backend: vllm` or `transformers`",
        )
    reference = view.inputs.get("reference", ())
    apart = reference and reference != view.inputs.get("model")
    roles = _SCORERS if apart else _SCORERS[:1]
    return tuple(context.server_lease(view, role, role) for role in roles)


BACKEND = StageBackend(
    id=ID,
    kind="rollout",
    version=VERSION,
    doc="Asynchronous ReAct episodes over an OpenAI-compatible server and an AgentGym environment; "
    "results do not depend on concurrency, and an interrupted run continues.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset(
        {
            *("react", "react_inline", "action_only", "text", "tools", "output_marker"),
            *("resume", "infrastructure_errors"),
        }
    ),
    options=OPTIONS,
)
