"""Declares `trl.online_rl`, GRPO and RLOO by TRL's own trainers, and lowers its stages."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.field import Json
from agentc.kinds.reinforcement import ActorSteps
from agentc.kinds.settings import fields_of
from agentc_backends.agents.common.lowering import ACTION_OPTIONS
from agentc_backends.software import TORCH
from agentc_backends.trainers.online_rl.lowering import CAPABILITIES, WITHOUT_ENCODER, online_job
from agentc_backends.trainers.online_rl.settings import GroupOptions


def _lower_trl(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    options = view.config_of(GroupOptions)
    if options["clip_high"] is None:
        options["clip_high"] = options["clip_low"]
    episodes = view.integer("episodes")
    learner = {
        "algorithm": view.text("algorithm"),
        **options,
        "episodes": episodes,
        **view.config_of(ActorSteps, "actor"),
    }
    _refuse_uneven(view)
    _refuse_split_texts(view, context)
    # An iteration learns from its own episodes, once.
    buffer: Json = {"capacity": 2**31, "episodes": episodes, "by": "utterances"}
    return (online_job(stage, view, context, TRL, learner, buffer),)


def _refuse_uneven(view: StageView) -> None:
    """Groups, minibatches and passes must divide evenly."""
    episodes, group = view.integer("episodes"), view.integer("group")
    updates, minibatches = view.integer("actor.updates"), view.integer("minibatches")
    if episodes % group:
        view.refuse(
            "group",
            f"{episodes} episodes are not whole groups of {group}",
            fix=f"set it to a divisor of {episodes}, or `episodes` to a multiple of {group}",
        )
    if episodes % minibatches:
        view.refuse(
            "minibatches",
            f"{episodes} episodes do not divide into {minibatches}",
            fix="set it to a divisor of `episodes`",
        )
    if updates % minibatches:
        view.refuse(
            "actor.updates",
            f"{updates} steps are not whole passes over the episodes, of {minibatches} steps each",
            fix=f"set it to a multiple of {minibatches}",
        )


def _refuse_split_texts(view: StageView, context: LowerContext) -> None:
    """TRL reads an episode as one text, in which each reply follows all that came before it."""
    prompt = context.prompt(view)
    if prompt is not None and prompt.memory == "last":
        view.refuse(
            "prompt",
            "TRL reads an episode as one text, and under `memory: last` it is as many as it has "
            "turns",
            fix="write `memory: all` in the prompt, or take another algorithm",
        )
    if view.text("on_overflow") == "drop_oldest":
        view.refuse(
            "on_overflow",
            "TRL reads an episode as one text, and what was dropped would have to be in it and not",
            fix="set it to error or end",
        )


TRL = StageBackend(
    id="trl.online_rl",
    kind="online_rl",
    algorithms=("grpo", "rloo"),
    version=2,
    doc="GRPO and RLOO by TRL's own trainers, on episodes of this project: a text and a mask for "
    "each, advantages within a group that played one task.",
    software=TORCH,
    lower=_lower_trl,
    capabilities=CAPABILITIES,
    inputs=WITHOUT_ENCODER,
    options=(*ACTION_OPTIONS, *fields_of(GroupOptions)),
    unused={
        "critic": "GRPO and RLOO have no critic",
        "actor.advantage": "advantages are a group's; `options.beta` is the penalty",
        "actor.kl_penalty": "advantages are a group's; `options.beta` is the penalty",
        "actor.batch": "`options.minibatches` says into how many steps episodes are divided",
        "discount": "an episode is worth the plain sum of its rewards",
        "buffer": "only what was just played is learnt from",
    },
)
