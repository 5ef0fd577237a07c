"""Declares `archer.online_rl`, `chai.online_rl`, `filtered_bc.online_rl`, `ppo.online_rl` and
`archer.offline_rl`, and lowers their stages to one job each."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import POLICY_RUN
from agentc.kinds.field import Field, Json, boolean, choice, integer, number
from agentc.kinds.interaction import Decode
from agentc.program.settings import declared_in
from agentc_backends.agents.common.lowering import ACTION_OPTIONS
from agentc_backends.software import TORCH
from agentc_backends.trainers.online_rl.lowering import (
    ACTOR_FIELDS,
    BY_ADVANTAGE,
    CAPABILITIES,
    CRITIC_FIELDS,
    READING_FIELDS,
    WITHOUT_ENCODER,
    actor_steps,
    critic_settings,
    encoder_settings,
    kept_iterations,
    online_job,
    refuse_all_warmup,
)

_IMITATION: tuple[Field, ...] = (
    *ACTION_OPTIONS,
    number("keep_share", "The share of the kept episodes, by their returns, that is imitated, and "
           "all that are as good as the worst of it.", 0.1, above=0, maximum=1),
    integer("window", "Of the newest so many episodes; null: of all in the buffer.", None,
            minimum=1, nullable=True),
)  # fmt: skip

_RULES: tuple[Field, ...] = (
    number("clip", "How far from 1 the ratio of a token's probabilities, now and when it was "
           "drawn, still counts.", 0.2, above=0),
    number("value_clip", "How far a value may move in an iteration and still gain by it; null: "
           "any way.", None, above=0, nullable=True),
    number("gae_lambda", "Share of a token's surprise that the token before it is credited with, "
           "and so on (GAE): 1 weighs all that followed, 0 the next value alone.", 0.95,
           minimum=0, maximum=1),
    integer("epochs", "Times that policy and values go over the episodes of an iteration.", 4,
            minimum=1),
    number("entropy_coef", "Worth of a nat of the entropy of what a token is drawn from, in the "
           "policy's loss.", 0.0, minimum=0),
    boolean("normalise", "Take their mean off the advantages of an iteration's tokens, and divide "
            "them by their standard deviation.", True),
)  # fmt: skip

_RANKING: tuple[Field, ...] = (
    *ACTION_OPTIONS,
    integer("candidates", "Replies that are drawn for each turn, of which the critic says one.", 5,
            minimum=2),
    choice("rank_with", "Who ranks them: the slow copy of the critic (the released code's), or the "
           "critic itself.", ("target", "online"), "target"),
)  # fmt: skip


def _lower_archer(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    actor = {name: view.get(f"actor.{name}") for name in BY_ADVANTAGE}
    learner: dict[str, Json] = {
        "algorithm": "archer",
        "critic": _critic(view),
        "actor": {**actor_steps(view), **actor},
        **encoder_settings(view),
    }
    return (online_job(stage, view, context, ARCHER, learner, view.get("buffer")),)


def _lower_chai(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    for name in (*ACTOR_FIELDS, *BY_ADVANTAGE):
        view.leave(f"actor.{name}", "CHAI trains no policy; its critic chooses what is said")
    view.leave("warmup", "no update of the policy comes behind it; the critic chooses from the "
               "first iteration on, as in the released code")  # fmt: skip
    view.leave("keep", "the policy is the same after every iteration; `start` goes on from the "
               "critic at the end")  # fmt: skip
    if view.get("evaluate") is not None and not view.number("evaluate.temperature"):
        view.refuse(
            "evaluate.temperature",
            "at temperature 0 all candidates are the same one, and the critic has no say",
            fix="set it above 0, to that of `decode.temperature`, say",
        )
    learner: dict[str, Json] = {
        "algorithm": "chai",
        "critic": {
            **_critic(view),
            "candidates": view.integer("candidates"),
            "rank_with": view.text("rank_with"),
        },
        **encoder_settings(view),
    }
    return (online_job(stage, view, context, CHAI, learner, view.get("buffer"), trains=False),)


def _lower_filtered_bc(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    for name in (*CRITIC_FIELDS, *READING_FIELDS, "expectile"):
        view.leave(f"critic.{name}", "filtered behaviour cloning has no critic")
    for name in BY_ADVANTAGE:
        view.leave(f"actor.{name}", "filtered behaviour cloning imitates; nothing is weighted")
    view.leave("discount", "episodes are chosen by the plain sum of their rewards")
    learner: dict[str, Json] = {
        "algorithm": "filtered_bc",
        "actor": actor_steps(view),
        "keep_share": view.number("keep_share"),
        "window": view.get("window"),
    }
    return (online_job(stage, view, context, FILTERED_BC, learner, view.get("buffer")),)


def _lower_ppo(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    for name in ("updates", "target_rate", "value_target", "expectile"):
        view.leave(f"critic.{name}", "PPO holds a value of each token to GAE's, in all `epochs`")
    for name in READING_FIELDS:
        view.leave(f"critic.{name}", "PPO's values read with the policy's body")
    view.leave("actor.updates", "PPO goes over an iteration's episodes in all `epochs`")
    view.leave("actor.advantage", "PPO's advantages are GAE's; see `normalise`")
    for name in ("capacity", "episodes"):
        view.leave(f"buffer.{name}", "PPO learns from the episodes of the iteration alone")
    for name in ("temperature", "top_p"):
        if view.number(f"decode.{name}") != 1:
            view.refuse(
                f"decode.{name}",
                "PPO compares probabilities of the model itself, so replies have to be drawn by "
                "them",
                fix="leave it at 1",
            )
    by = view.text("buffer.by")
    critic: dict[str, Json] = {
        name: view.get(f"critic.{name}")
        for name in ("lr", "batch", "hidden", "start", "max_grad_norm")
    }
    actor = ("lr", "batch", "max_grad_norm", "kl_penalty")
    learner: dict[str, Json] = {
        "algorithm": "ppo",
        "critic": {**critic, "discount": view.number("discount")},
        "actor": {name: view.get(f"actor.{name}") for name in actor},
        "rules": {**{field.name: view.get(field.name) for field in _RULES}, "by": by},
    }
    kept: dict[str, Json] = {"capacity": None, "episodes": view.integer("episodes"), "by": by}
    return (online_job(stage, view, context, PPO, learner, kept),)


def _critic(view: StageView) -> dict[str, Json]:
    return {**critic_settings(view), "discount": view.number("discount")}


_WITH_CRITIC = CAPABILITIES | {"utterance_critic"}
"""Of algorithms whose runs have a critic that a server can rank candidates by."""

ARCHER = StageBackend(
    id="archer.online_rl",
    kind="online_rl",
    version=4,
    doc="ArCHer: a critic of whole utterances, learnt from everything that was played, and the "
    "policy by its advantages (Zhou et al., ICML 2024).",
    software=TORCH,
    lower=_lower_archer,
    capabilities=_WITH_CRITIC,
    options=ACTION_OPTIONS,
)

CHAI = StageBackend(
    id="chai.online_rl",
    kind="online_rl",
    version=2,
    doc="CHAI: the policy stays as it is, and of several candidates for each reply the one is said "
    "that a critic thinks best, which learns as ArCHer's does (Verma et al. 2022).",
    software=TORCH,
    lower=_lower_chai,
    capabilities=_WITH_CRITIC,
    options=_RANKING,
)

FILTERED_BC = StageBackend(
    id="filtered_bc.online_rl",
    kind="online_rl",
    version=3,
    doc="Online filtered behaviour cloning: the policy imitates the best share of the episodes "
    "that it played.",
    software=TORCH,
    lower=_lower_filtered_bc,
    capabilities=CAPABILITIES,
    inputs=WITHOUT_ENCODER,
    options=_IMITATION,
)

PPO = StageBackend(
    id="ppo.online_rl",
    kind="online_rl",
    version=3,
    doc="PPO on tokens (Schulman et al., 2017): clipped steps on the episodes of each iteration, "
    "by advantages over the values of a network of its own.",
    software=TORCH,
    lower=_lower_ppo,
    capabilities=CAPABILITIES,
    inputs=WITHOUT_ENCODER,
    options=(*ACTION_OPTIONS, *_RULES),
)


_OF_FRESH_REPLIES = ("advantage", "kl_penalty")
_OF_STORED_REPLIES = ("temperature", "clip_weight")


def _lower_offline_archer(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    iterations = view.integer("iterations")
    refuse_all_warmup(view, iterations)
    critic, actor = critic_settings(view), _offline_actor(view)
    draws = critic["value_target"] == "policy" or actor["objective"] == "policy_gradient"
    config: dict[str, Json] = {
        "rewards": view.text("rewards"),
        "decode": view.get("decode") if draws else None,
        "iterations": iterations,
        "warmup": view.integer("warmup"),
        "discount": view.number("discount"),
        "by": view.text("buffer.by"),
        "critic": critic,
        "actor": actor,
        **encoder_settings(view),
        "keep": kept_iterations(view, iterations),
        "publish_state": view.flag("publish_state"),
        "seed": view.integer("seed"),
    }
    if not draws:
        for field in declared_in(Decode):
            view.leave(
                f"decode.{field.name}",
                "no reply is drawn: critic and policy learn from those in the data",
            )
    return (
        JobDraft(
            kind="offline_rl",
            backend=OFFLINE_ARCHER.id,
            version=OFFLINE_ARCHER.version,
            software=TORCH,
            program=("-m", "agentc_backends.trainers.online_rl.job_offline"),
            view=view,
            config=config,
            placement={
                "micro_batch": view.integer("micro_batch"),
                "save_every": view.get("save_every"),
            },
            inputs=view.inputs,
            produces=POLICY_RUN.name,
            contract={"min_rows": 0},  # it plays no episodes of its own
            resume=True,
        ),
    )


def _offline_actor(view: StageView) -> dict[str, Json]:
    objective = view.text("actor.objective")
    fresh = objective == "policy_gradient"
    read, left = _OF_STORED_REPLIES, _OF_FRESH_REPLIES
    why = "stored replies are imitated; `actor.temperature` says how much the better ones more"
    if fresh:
        read, left = left, read
        why = "fresh replies are weighted by their advantages as these are"
    for name in left:
        view.leave(f"actor.{name}", why)
    return {
        **actor_steps(view),
        "objective": objective,
        **{name: view.get(f"actor.{name}") for name in read},
    }


OFFLINE_ARCHER = StageBackend(
    id="archer.offline_rl",
    kind="offline_rl",
    version=2,
    doc="Offline ArCHer: a critic of whole utterances by implicit Q-learning on recorded episodes, "
    "and the policy by advantage-weighted regression (Zhou et al., ICML 2024).",
    software=TORCH,
    lower=_lower_offline_archer,
    capabilities=frozenset({"resume", "float32"}),
)
