"""Declares `archer.online_rl`, `chai.online_rl`, `filtered_bc.online_rl`, `ppo.online_rl` and
`archer.offline_rl`, and lowers their stages to one job each."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import POLICY_RUN
from agentc.kinds.field import Json
from agentc.kinds.interaction import Decoding
from agentc.kinds.reinforcement import ActorSteps, Buffer, CriticSteps, OfflineActorSteps
from agentc.kinds.settings import fields_of
from agentc.program.settings import declared_in
from agentc_backends.agents.common.lowering import ACTION_OPTIONS
from agentc_backends.software import TORCH
from agentc_backends.trainers.online_rl.lowering import (
    CAPABILITIES,
    WITHOUT_ENCODER,
    critic_config,
    encoder_config,
    online_job,
    refuse_all_warmup,
    stored_iterations,
)
from agentc_backends.trainers.online_rl.settings import (
    ImitationOptions,
    PpoOptions,
    RankingOptions,
)


def _lower_archer(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    learner: dict[str, Json] = {
        "algorithm": "archer",
        "critic": critic_config(view),
        "actor": view.config_of(ActorSteps, "actor"),
        **encoder_config(view),
    }
    return (online_job(stage, view, context, ARCHER, learner, view.config_of(Buffer, "buffer")),)


def _lower_chai(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    if view.get("evaluate") is not None and not view.number("evaluate.temperature"):
        view.refuse(
            "evaluate.temperature",
            "at temperature 0 all candidates are the same one, and the critic has no say",
            fix="set it above 0, to that of `decode.temperature`, say",
        )
    learner: dict[str, Json] = {
        "algorithm": "chai",
        "critic": {**critic_config(view), **view.config_of(RankingOptions)},
        **encoder_config(view),
    }
    buffer = view.config_of(Buffer, "buffer")
    return (online_job(stage, view, context, CHAI, learner, buffer, trains=False),)


def _lower_filtered_bc(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    learner: dict[str, Json] = {
        "algorithm": "filtered_bc",
        "actor": view.config_of(ActorSteps, "actor"),
        **view.config_of(ImitationOptions),
    }
    buffer = view.config_of(Buffer, "buffer")
    return (online_job(stage, view, context, FILTERED_BC, learner, buffer),)


def _lower_ppo(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    for name in ("temperature", "top_p"):
        if view.number(f"decode.{name}") != 1:
            view.refuse(
                f"decode.{name}",
                "PPO compares probabilities of the model itself, so replies have to be drawn by "
                "them",
                fix="leave it at 1",
            )
    by = view.text("buffer.by")
    learner: dict[str, Json] = {
        "algorithm": "ppo",
        "critic": critic_config(view),
        "actor": view.config_of(ActorSteps, "actor"),
        "rules": {**view.config_of(PpoOptions), "by": by},
    }
    kept: dict[str, Json] = {"capacity": None, "episodes": view.integer("episodes"), "by": by}
    return (online_job(stage, view, context, PPO, learner, kept),)


_WITH_CRITIC = CAPABILITIES | {"utterance_critic"}
"""Of algorithms whose runs have a critic that a server can rank candidates by."""

ARCHER = StageBackend(
    id="archer.online_rl",
    kind="online_rl",
    algorithms=("archer",),
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
    algorithms=("chai",),
    version=2,
    doc="CHAI: the policy stays as it is, and of several candidates for each reply the critic's "
    "best one is used, which learns as ArCHer's does (Verma et al. 2022).",
    software=TORCH,
    lower=_lower_chai,
    capabilities=_WITH_CRITIC,
    options=(*ACTION_OPTIONS, *fields_of(RankingOptions)),
    unused={
        "actor": "CHAI trains no policy; its critic chooses the reply",
        "warmup": "no update of the policy comes behind it; the critic chooses from the first "
        "iteration on, as in the released code",
        "keep": "the policy is the same after every iteration; `start` continues with the critic "
        "at the end",
    },
)

FILTERED_BC = StageBackend(
    id="filtered_bc.online_rl",
    kind="online_rl",
    algorithms=("filtered_bc",),
    version=3,
    doc="Online filtered behaviour cloning: the policy imitates the best share of the episodes "
    "that it played.",
    software=TORCH,
    lower=_lower_filtered_bc,
    capabilities=CAPABILITIES,
    inputs=WITHOUT_ENCODER,
    options=(*ACTION_OPTIONS, *fields_of(ImitationOptions)),
    unused={
        "critic": "filtered behaviour cloning has no critic",
        "actor.advantage": "filtered behaviour cloning imitates; nothing is weighted",
        "actor.kl_penalty": "filtered behaviour cloning imitates; nothing is weighted",
        "discount": "episodes are chosen by the plain sum of their rewards",
    },
)

PPO = StageBackend(
    id="ppo.online_rl",
    kind="online_rl",
    algorithms=("ppo",),
    version=3,
    doc="PPO on tokens (Schulman et al., 2017): clipped steps on the episodes of each iteration, "
    "by advantages over the values of a network of its own.",
    software=TORCH,
    lower=_lower_ppo,
    capabilities=CAPABILITIES,
    inputs=WITHOUT_ENCODER,
    options=(*ACTION_OPTIONS, *fields_of(PpoOptions)),
    unused={
        **{
            f"critic.{name}": "PPO holds a value of each token to GAE's, in all `epochs`"
            for name in ("updates", "target_rate", "value_target", "expectile")
        },
        "critic.pool": "PPO's values read with the policy's body",
        "critic.max_length": "PPO's values read with the policy's body",
        "actor.updates": "PPO goes over an iteration's episodes in all `epochs`",
        "actor.advantage": "PPO's advantages are GAE's; see `normalise`",
        "buffer.capacity": "PPO learns only from the episodes of the iteration",
        "buffer.episodes": "PPO learns only from the episodes of the iteration",
    },
)


def _lower_offline_archer(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    iterations = view.integer("iterations")
    refuse_all_warmup(view, iterations)
    critic = view.config_of(CriticSteps, "critic")
    actor = _offline_actor(view)
    draws = critic["value_target"] == "policy" or actor["objective"] == "policy_gradient"
    config: dict[str, Json] = {
        "rewards": view.text("rewards"),
        "decode": view.config_of(Decoding, "decode", without={} if draws else _NOTHING_DRAWN)
        or None,
        "iterations": iterations,
        "warmup": view.integer("warmup"),
        "discount": view.number("discount"),
        "by": view.text("buffer.by"),
        "critic": critic,
        "actor": actor,
        **encoder_config(view),
        "keep": stored_iterations(view, iterations),
        "publish_state": view.flag("publish_state"),
        "seed": view.integer("seed"),
    }
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


_NOTHING_DRAWN = dict.fromkeys(
    (each.name for each in declared_in(Decoding)),
    "no reply is drawn: critic and policy learn from those in the data",
)


def _offline_actor(view: StageView) -> dict[str, Json]:
    """Settings of the policy's steps; each objective has two that the other has not."""
    if view.text("actor.objective") == "policy_gradient":
        unused = ("temperature", "clip_weight")
        why = "fresh replies are weighted by their advantages as these are"
    else:
        unused = ("advantage", "kl_penalty")
        why = "stored replies are imitated; `actor.temperature` says how much the better ones more"
    return view.config_of(OfflineActorSteps, "actor", without=dict.fromkeys(unused, why))


OFFLINE_ARCHER = StageBackend(
    id="archer.offline_rl",
    kind="offline_rl",
    algorithms=("archer",),
    version=2,
    doc="Offline ArCHer: a critic of whole utterances by implicit Q-learning on recorded episodes, "
    "and the policy by advantage-weighted regression (Zhou et al., ICML 2024).",
    software=TORCH,
    lower=_lower_offline_archer,
    capabilities=frozenset({"resume", "float32"}),
)
