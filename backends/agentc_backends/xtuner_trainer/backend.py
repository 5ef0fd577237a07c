"""Declares `xtuner.sft` and lowers its stages to the settings of an XTuner configuration file,
under the names that XTuner's own configurations use.

`config_file.py` writes the file in the job: rows, paths and device are known there.
"""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.ir.artifacts import CHECKPOINT
from agentc.kinds.field import Field, Json
from agentc_backends.software import XTUNER
from agentc_backends.trainer_settings import micro_batches, token_mask, warmed_schedule

OPTIONS = (
    Field(
        name="zero_stage",
        schema={"type": ["integer", "null"], "enum": [1, 2, 3, None]},
        doc="Stage of DeepSpeed's ZeRO (`xtuner train --deepspeed`); null: no DeepSpeed.",
        default=None,
    ),
)


def _lower_sft(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    processes = view.integer("processes")
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
        "zero_stage": view.get("zero_stage"),
    }
    config: dict[str, Json] = {
        "settings": settings,
        "mask": token_mask(view, view.text("loss_on")),
        "min_reward": view.get("min_reward"),
    }
    draft = JobDraft(
        kind="sft",
        backend="xtuner.sft",
        version=1,
        software=XTUNER,
        program=("-m", "agentc_backends.xtuner_trainer.job_sft"),
        view=view,
        config=config,
        inputs=view.inputs,
        produces=CHECKPOINT.name,
        placement={"processes": processes},
        processes=processes,
        # XTuner averages over micro-batches whose own losses are means over their trained tokens,
        # so what a micro-batch holds changes the result.
        extra_identity={} if micro_batch == 1 else {"micro_batch": micro_batch},
    )
    return (draft,)


SFT = StageBackend(
    id="xtuner.sft",
    kind="sft",
    version=1,
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
        }
    ),
    options=OPTIONS,
    decisive=frozenset({"micro_batch"}),
)
