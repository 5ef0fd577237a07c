"""Declares `archer.offline_rl`, and lowers a stage of offline RL to its one job, which leases
nothing: `job_offline.py`. Neighbour: `backend.py`, online RL."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import POLICY_RUN
from agentc.kinds.field import Json
from agentc.kinds.interaction import DECODE
from agentc_backends.software import TORCH
from agentc_backends.trainers.online_rl.lowering import (
    actor_steps,
    critic_settings,
    encoder_settings,
    kept_iterations,
    refuse_all_warmup,
)

_OF_FRESH_REPLIES = ("advantage", "kl_penalty")
_OF_STORED_REPLIES = ("temperature", "clip_weight")


def _lower_archer(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    iterations = view.integer("iterations")
    refuse_all_warmup(view, iterations)
    critic, actor = critic_settings(view), _actor(view)
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
        for field in DECODE.fields:
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


def _actor(view: StageView) -> dict[str, Json]:
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
    lower=_lower_archer,
    capabilities=frozenset({"resume", "float32"}),
)
