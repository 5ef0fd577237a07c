"""Declares `trl.online_rl`, GRPO and RLOO by TRL's own trainers, and lowers its stages."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.field import Field, Json, boolean, choice, integer, number
from agentc_backends.agents.common.lowering import ACTION_OPTIONS
from agentc_backends.software import TORCH
from agentc_backends.trainers.online_rl.lowering import (
    BY_ADVANTAGE,
    CAPABILITIES,
    CRITIC_FIELDS,
    READING_FIELDS,
    WITHOUT_ENCODER,
    online_job,
)

_OPTIONS: tuple[Field, ...] = (
    *ACTION_OPTIONS,
    choice("algorithm", "`grpo`: advantages within the group, clipped for each token; `rloo`: "
           "against the mean of the group's others, clipped for each episode.",
           ("grpo", "rloo"), "grpo"),
    integer("group", "Episodes of each drawn task, played side by side.", 8, minimum=2),
    integer("minibatches", "Gradient steps in one pass over an iteration's episodes; of several "
            "passes `actor.updates` is the steps in all.", 1, minimum=1),
    number("beta", "Weight of the divergence from the policy that the run started from: a term of "
           "GRPO's loss, taken off the returns by RLOO. 0 spares that model.", 0.0, minimum=0),
    number("clip_low", "How far below 1 the ratio to the policy that played counts.", 0.2,
           above=0, maximum=1),
    number("clip_high", "How far above 1; null: as `clip_low`.", None, above=0, nullable=True),
    choice("scale_rewards", "Of grpo: advantages are divided by the standard deviation of their "
           "`group`, of the whole `batch`, or by `none`.", ("group", "batch", "none"), "group"),
    boolean("normalise_advantages", "Of rloo: advantages of the whole batch are brought to mean 0 "
            "and standard deviation 1.", False),
    choice("loss_type", "Of grpo: `grpo` means over each episode's tokens, then over episodes; "
           "`dapo` over all tokens of the iteration alike.", ("grpo", "dapo"), "grpo"),
)  # fmt: skip


def _lower_trl(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    _leave_unused_fields(view)
    algorithm, group = view.text("algorithm"), view.integer("group")
    low, high = view.number("clip_low"), view.get("clip_high")
    learner: dict[str, Json] = {
        "algorithm": algorithm,
        "episodes": view.integer("episodes"),
        "group": group,
        "lr": view.number("actor.lr"),
        "updates": view.integer("actor.updates"),
        "minibatches": view.integer("minibatches"),
        "max_grad_norm": view.number("actor.max_grad_norm"),
        "beta": view.number("beta"),
        "clip_low": low,
        "clip_high": low if high is None else high,
    }
    if algorithm == "grpo":
        learner["scale_rewards"] = view.text("scale_rewards")
        learner["loss_type"] = view.text("loss_type")
        view.leave("normalise_advantages", "GRPO has `scale_rewards`")
    else:
        learner["normalise_advantages"] = view.flag("normalise_advantages")
        view.leave("scale_rewards", "RLOO has `normalise_advantages`")
        view.leave("loss_type", "RLOO has one loss")
    _refuse_uneven(view)
    _refuse_split_texts(view, context)
    # An iteration learns from its own episodes, once.
    buffer: Json = {"capacity": 2**31, "episodes": view.integer("episodes"), "by": "utterances"}
    return (online_job(stage, view, context, TRL, learner, buffer),)


def _leave_unused_fields(view: StageView) -> None:
    for name in (*CRITIC_FIELDS, *READING_FIELDS, "expectile"):
        view.leave(f"critic.{name}", "GRPO and RLOO have no critic")
    for name in BY_ADVANTAGE:
        view.leave(f"actor.{name}", "advantages are a group's; `options.beta` is the penalty")
    view.leave("actor.batch", "`options.minibatches` says into how many steps episodes are divided")
    view.leave("discount", "an episode is worth the plain sum of its rewards")
    for name in ("capacity", "episodes", "by"):
        view.leave(f"buffer.{name}", "only what was just played is learnt from")


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
            fix="write `memory: all` in the prompt, or take another backend",
        )
    if view.text("on_overflow") == "drop_oldest":
        view.refuse(
            "on_overflow",
            "TRL reads an episode as one text, and what was dropped would have to stand in it and "
            "not",
            fix="set it to error or end",
        )


TRL = StageBackend(
    id="trl.online_rl",
    kind="online_rl",
    version=2,
    doc="GRPO and RLOO by TRL's own trainers, on episodes of this project: a text and a mask for "
    "each, advantages within a group that played one task.",
    software=TORCH,
    lower=_lower_trl,
    capabilities=CAPABILITIES,
    inputs=WITHOUT_ENCODER,
    options=_OPTIONS,
)
