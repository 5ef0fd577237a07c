"""What the algorithms of online RL have in common when a stage is lowered: the job itself, and the
settings that several of them read. Offline RL reads some of the same settings."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import POLICY_RUN
from agentc.kinds.field import Json
from agentc.kinds.reinforcement import CriticSteps, EncoderReading
from agentc_backends.agents.common.lowering import (
    action_config,
    environment_leases,
    episode_config,
    prompt_config,
)
from agentc_backends.software import TORCH

_PROGRAM = ("-m", "agentc_backends.trainers.online_rl.job_online")

CAPABILITIES = frozenset(
    {"react", "react_inline", "action_only", "text", "tools", "output_marker", "resume", "float32"}
)
WITHOUT_ENCODER = ("model", "start")
"""The inputs of algorithms without a critic of texts, which would read with an `encoder`."""


def critic_config(view: StageView) -> dict[str, Json]:
    """How the critic is trained, where the algorithm has one of utterances."""
    return {**view.config_of(CriticSteps, "critic"), "discount": view.number("discount")}


def encoder_config(view: StageView) -> dict[str, Json]:
    """How the critic's encoder reads, under `encoder`, where the stage has one."""
    reading = view.config_of(EncoderReading, "critic")
    return {"encoder": reading} if reading else {}


def online_job(
    stage: StageView,
    view: StageView,
    context: LowerContext,
    backend: StageBackend,
    learner: dict[str, Json],
    buffer: Json,
    *,
    trains: bool = True,
) -> JobDraft:
    """The job of a stage. `learner` are the settings of the algorithm, `buffer` those of the replay
    buffer. An algorithm that does not train the policy (`trains`) has no warm-up and keeps no
    policies."""
    facts = context.environment_facts(view)
    prompt = context.prompt(view)
    iterations = view.integer("iterations")
    config: dict[str, Json] = {
        **episode_config(view, facts, prompt),
        **action_config(view, prompt),
        "tasks": view.text("tasks"),
        "iterations": iterations,
        "episodes": view.integer("episodes"),
        "warmup": _warmup(view, iterations) if trains else 0,
        "buffer": buffer,
        "learner": learner,
        "evaluate": _evaluation(view, facts["splits"]),
        "keep": stored_iterations(view, iterations) if trains else [],
        "publish_state": view.flag("publish_state"),
    }
    if not view.number("decode.temperature"):
        view.refuse(
            "decode.temperature",
            "a policy that always says the likeliest meets nothing new to learn from",
            fix="set it above 0; `evaluate.temperature` is that of the evaluations",
        )
    return JobDraft(
        kind="online_rl",
        backend=backend.id,
        version=backend.version,
        software=TORCH,
        program=_PROGRAM,
        view=view,
        config=config,
        placement={
            "concurrency": view.integer("concurrency"),
            "micro_batch": view.integer("micro_batch"),
            "save_every": view.get("save_every"),
        },
        inputs=view.inputs,
        produces=POLICY_RUN.name,
        leases=environment_leases(view, context, TORCH),
        extra_identity={"prompt": prompt_config(prompt)},
        contract={"reward_range": facts["reward_range"]},
        resume=True,
    )


def _warmup(view: StageView, iterations: int) -> int:
    refuse_all_warmup(view, iterations)
    return view.integer("warmup")


def _evaluation(view: StageView, splits: Json) -> Json:
    settings = view.get("evaluate")
    if isinstance(settings, dict) and isinstance(splits, (list, tuple)) and splits:
        split = settings["split"]
        if split not in splits:
            view.refuse(
                "evaluate.split",
                f"the environment has no split {split!r}; it has {', '.join(map(str, splits))}",
                fix="name one of them",
            )
    return settings


def refuse_all_warmup(view: StageView, iterations: int) -> None:
    """Refuse a run of nothing but warm-up, unless it continues an earlier run."""
    if view.integer("warmup") >= iterations and not view.inputs.get("start"):
        view.refuse(
            "warmup",
            f"all {iterations} iterations would be warm-up, and the policy stay as it is",
            fix=f"set it below {iterations}",
        )


def stored_iterations(view: StageView, iterations: int) -> Json:
    """The iterations whose policies are kept; refused beyond the end of the run."""
    kept = view.get("keep")
    late = [each for each in kept if isinstance(each, int) and each > iterations] if kept else []  # type: ignore[union-attr]
    if late and not view.inputs.get("start"):
        view.refuse(
            "keep",
            f"the run ends after iteration {iterations}, before {late[0]}",
            fix=f"name iterations from 0 to {iterations}",
        )
    return kept
