"""Declares `xtuner.sft` and lowers its stages to the settings of an XTuner configuration file,
under the names that XTuner's own configurations use.

`config_file.py` writes the file in the job: rows, paths and device are known there.
"""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.backend_api.memory import ALWAYS, Held, Logits, MemoryQuestion, TrainerMemory
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc.kinds.training import RowChoice
from agentc_backends.software import XTUNER
from agentc_backends.trainers.common.checks import attention_implementation
from agentc_backends.trainers.common.lowering import (
    adapter_weights,
    gradients_at,
    micro_batches,
    rows_at_once,
    stage_in,
    token_mask,
    training_job,
    training_processes,
    warmed_schedule,
    zero_held,
    zero_stage,
)
from agentc_backends.trainers.xtuner.settings import XtunerOptions

# Without DeepSpeed mmengine writes a checkpoint into memory first; GPUs' numbers are copied before.
_LOGITS = 12
"""Bytes of a score: in float32, the shifted copy, and its logarithm."""


def sft_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of xtuner.sft."""
    rows, accumulates = rows_at_once(question, 1)
    stage = stage_in(question)
    half = question.text("dtype", "float32") == "bfloat16"
    adapters, count = adapter_weights(question), training_processes(question)
    flow = 2 if half else 4
    if isinstance(stage, int):
        held = zero_held(question, stage, weights=flow)
    else:
        held = _plain(count, half, accumulates)
    return TrainerMemory(
        held=held,
        processes=count,
        sequences=rows,
        length=question.integer("max_length", 1),
        flow=flow,
        residual=2 if half and isinstance(stage, int) else 4,
        logits=Logits(_LOGITS + (2 if half else 0)),
        checkpointing=question.flag("gradient_checkpointing"),
        gathered=2 if stage == 3 else 0,
        loaded=4,
        saving=0 if adapters or isinstance(stage, int) else 24 if question.gpus else 12,
        checkpoint=4 if adapters else 14 if half and isinstance(stage, int) else 12,
        adapters=adapters,
    )


def _plain(count: int, half: bool, accumulates: bool) -> tuple[Held, ...]:
    held = [
        Held(name="weights", width=4, at=ALWAYS),
        Held(name="gradients", width=4, of="trained", at=gradients_at(accumulates)),
        Held(name="Adam", width=8, of="trained"),
    ]
    if half:
        held.append(Held(name="bfloat16 copies", width=2, at=frozenset({"loss"})))
    if count > 1:
        held.append(Held(name="DDP buckets", width=4, of="trained"))
    return tuple(held)


def _lower_sft(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    micro_batch, accumulation = micro_batches(view, 1)
    scheduler, warmup_ratio = warmed_schedule(view)
    packing = view.flag("packing")
    if packing and micro_batch != 1:
        view.refuse(
            "micro_batch",
            "a packed sequence is as long as max_length: XTuner batches no further",
            fix="leave micro_batch out, or set it to 1",
        )
    dtype = view.text("dtype")
    stage, by_sharding = zero_stage(view)
    offload = view.flag("offload")
    if offload and stage is None:
        view.refuse(
            "offload",
            "without DeepSpeed nothing is divided, and XTuner moves nothing else",
            fix="set sharding: full",
        )
    settings: dict[str, Json] = {
        "max_length": view.integer("max_length"),
        "pack_to_max_length": packing,
        "batch_size": micro_batch,
        "accumulative_counts": accumulation,
        "max_epochs": view.number("epochs"),
        "max_steps": view.get("max_steps"),
        "lr": view.number("lr"),
        "betas": [view.number("adam_beta1"), view.number("adam_beta2")],
        "weight_decay": view.number("weight_decay"),
        "max_norm": view.number("max_grad_norm"),
        "scheduler": scheduler,
        "warmup_ratio": warmup_ratio,
        "dtype": dtype,
        "use_activation_checkpointing": view.flag("gradient_checkpointing"),
        "seed": view.integer("seed"),
        "save_steps": view.get("save_every"),
        "log_steps": view.integer("log_every"),
        "lora": view.get("lora"),
        "attention": attention_implementation(view.text("attention")),
        "zero_stage": stage,
        "offload": offload,
        "save_dtype": view.text("save_dtype"),
    }
    config: dict[str, Json] = {
        "settings": settings,
        "mask": token_mask(view, view.text("loss_on")),
        **view.config_of(RowChoice),
    }
    # XTuner averages over micro-batches whose own losses are means over their trained tokens, so
    # what a micro-batch holds changes the result.
    decisive: dict[str, Json] = {} if micro_batch == 1 else {"micro_batch": micro_batch}
    # Under DeepSpeed bfloat16 weights are trained, with float32 copies in the optimiser.
    if by_sharding:
        decisive["zero_stage"] = stage
    return (training_job(view, SFT, config, decisive),)


SFT = StageBackend(
    id="xtuner.sft",
    kind="sft",
    version=2,
    doc="Supervised fine-tuning with XTuner 0.2 (Agent-R's trainer), on rows masked by agentc.",
    software=XTUNER,
    lower=_lower_sft,
    capabilities=frozenset(
        {
            "lora",
            "resume",
            "multiprocess",
            "observation_mask",
            "after_prompt",
            "marked",
            "min_reward",
            "packing",
            "zero",
            "sharding",
            "offload",
        }
    ),
    options=fields_of(XtunerOptions),
    decisive=frozenset({"micro_batch", "sharding"}),
    memory=sft_memory,
)
