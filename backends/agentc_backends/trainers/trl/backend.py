"""Declares `trl.sft`, `trl.dpo` and `trl.critic` and lowers their stages to the exact keyword
arguments of TRL 1.16's SFTConfig and DPOConfig (Hugging Face names), plus LoRA settings and mask
rules; `critic_lowering.py` has what critics have besides.

Only `output_dir`, `use_cpu`, `dataloader_pin_memory`, `ddp_backend` and `accelerator_config` are
added by the job: the machine decides them.
"""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.backend_api.memory import (
    ALWAYS,
    Held,
    Logits,
    MemoryQuestion,
    Moment,
    TrainerMemory,
)
from agentc.kinds.artifacts import CRITIC_CHECKPOINT
from agentc.kinds.field import Json
from agentc.kinds.training import Likelihood, RowChoice
from agentc_backends.software import TORCH
from agentc_backends.trainers.common.lowering import (
    adapter_weights,
    gradients_at,
    micro_batches,
    rows_at_once,
    token_mask,
    training_job,
    training_processes,
    warmed_schedule,
)
from agentc_backends.trainers.trl.critic_lowering import critic_config

_TILE = (4096, 32768)
_TILE_WIDTH_GPU, _TILE_WIDTH_CPU = 2, 33
"""On a GPU one kernel does a tile in place; elsewhere torch holds eight and a quarter for one: the
tile, what it is scaled to (twice), its logarithm, its exponential, the gradient, a sum of it before
and after it is added, and a mask of a byte for each number (`_backward_tile` of TRL)."""


def sft_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of trl.sft."""
    return _memory(question, pairs=False)


def dpo_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of trl.dpo: both sides of a pair at once, and until its log-probabilities are made a
    reference that is another model than the policy; the policy's own start is the policy."""
    return _memory(question, pairs=True)


def critic_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of trl.critic: as trl.dpo, but that a head is compared with no reference."""
    head = question.text("parameterisation", "log_ratio") == "value_head"
    return _memory(question, pairs=True, compared=not head)


def _memory(question: MemoryQuestion, *, pairs: bool, compared: bool = True) -> TrainerMemory:
    rows, accumulates = rows_at_once(question, None)
    count, adapters = training_processes(question), adapter_weights(question)
    half = question.text("dtype", "float32") == "bfloat16"
    sharding = question.text("sharding", "none")
    second = pairs and compared and question.reference
    flow = 2 if half else 4
    held = [
        *_model(sharding, half, question.flag("offload")),
        *_optimiser(sharding, gradients_at(accumulates), question.flag("offload")),
    ]
    if count > 1 and sharding == "none":
        held.append(Held(name="DDP buckets", width=4, of="trained"))
    if second:
        held.append(
            Held(
                name="reference",
                width=4,
                of="reference",
                split=sharding != "none",
                at=frozenset({"reference"}),
            )
        )
    return TrainerMemory(
        held=tuple(held),
        processes=count,
        sequences=2 * rows if pairs else rows,
        length=question.integer("max_length", 1),
        flow=flow,
        residual=4,
        logits=Logits(_TILE_WIDTH_GPU * flow / 2 if question.gpus else _TILE_WIDTH_CPU, _TILE),
        checkpointing=question.flag("gradient_checkpointing"),
        gathered=2 if sharding == "full" else 0,
        # A unit of its own, gathered in float32; `optimizer` has what of it flows already.
        ends={"full": 4, "optimizer": 4 - flow}.get(sharding, 0),
        loaded=8 if second else 4,
        loads_once=sharding != "none",
        checkpoint=4 if adapters else 12,
        adapters=adapters,
    )


def _model(sharding: str, half: bool, offload: bool) -> list[Held]:
    weights = Held(
        name="weights",
        width=4,
        split=sharding != "none",
        at=ALWAYS,
        offloaded=offload and sharding != "none",
    )
    passes: frozenset[Moment] = frozenset({"loss", "backward"})
    if sharding == "optimizer":
        whole = Held(name="gathered weights", width=2 if half else 4, at=passes)
        return [weights, whole]
    if sharding == "none" and half:
        # Autocast keeps its bfloat16 copies until the forward pass is over.
        return [weights, Held(name="bfloat16 copies", width=2, at=frozenset({"loss"}))]
    return [weights]


def _optimiser(sharding: str, gradients: frozenset[Moment], offload: bool) -> list[Held]:
    split = sharding != "none"
    away = offload and split
    return [
        Held(name="gradients", width=4, of="trained", split=split, at=gradients, offloaded=away),
        Held(name="Adam", width=8, of="trained", split=split, offloaded=away),
    ]


def _lower_sft(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    if view.flag("packing"):
        view.refuse(
            "packing",
            "trl.sft does not pack: on CPU, and without flash attention, packed rows would attend "
            "to each other",
            capability="packing",
            fix="leave it out; rows of a step are batched by length",
        )
    config: dict[str, Json] = {
        "arguments": {
            **_shared_arguments(view),
            "dataset_kwargs": {"skip_prepare_dataset": True},
            "loss_type": "nll",
            "packing": False,
        },
        "mask": token_mask(view, view.text("loss_on")),
        **view.config_of(RowChoice),
        "lora": view.get("lora"),
        "save_dtype": view.text("save_dtype"),
    }
    return (training_job(view, SFT, config),)


def _lower_dpo(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    config: dict[str, Json] = {
        "arguments": {
            **_shared_arguments(view),
            **_preference_loss(view),
            "beta": view.number("beta"),
            "disable_dropout": True,
            "precompute_ref_log_probs": True,
        },
        "nll": _likelihood(view),
        "mask": token_mask(view, view.text("score_on")),
        "lora": view.get("lora"),
        "save_dtype": view.text("save_dtype"),
    }
    return (training_job(view, DPO, config),)


def _likelihood(view: StageView) -> dict[str, Json] | None:
    """How the likelihood is counted; None without it."""
    counted = view.config_of(Likelihood)
    if not counted:
        return None
    on, reduction = counted["nll_on"], counted["nll_reduction"]
    return {"on": on, "reduction": "token" if reduction == "auto" else reduction}


def _lower_critic(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    config = critic_config(view, _shared_arguments(view))
    return (training_job(view, CRITIC, config, produces=CRITIC_CHECKPOINT),)


def _shared_arguments(view: StageView) -> dict[str, Json]:
    micro_batch, accumulation = micro_batches(view, None)
    scheduler, warmup = warmed_schedule(view)
    if view.flag("offload") and view.text("sharding") == "none":
        view.refuse(
            "offload",
            "what each process holds whole stays where it computes",
            fix="set sharding: full, which one process can do too",
        )
    max_steps = view.get("max_steps")
    save_every = view.get("save_every")
    checkpointing = view.flag("gradient_checkpointing")
    return {
        "learning_rate": view.number("lr"),
        "num_train_epochs": view.number("epochs"),
        "max_steps": -1 if max_steps is None else max_steps,
        "per_device_train_batch_size": micro_batch,
        "gradient_accumulation_steps": accumulation,
        "average_tokens_across_devices": True,
        "lr_scheduler_type": scheduler,
        # A share, as it is below 1.
        "warmup_steps": warmup,
        "optim": "adamw_torch_fused",
        "weight_decay": view.number("weight_decay"),
        "adam_beta1": view.number("adam_beta1"),
        "adam_beta2": view.number("adam_beta2"),
        "adam_epsilon": 1e-8,
        "max_grad_norm": view.number("max_grad_norm"),
        "max_length": view.integer("max_length"),
        "bf16": view.text("dtype") == "bfloat16",
        "gradient_checkpointing": checkpointing,
        "seed": view.integer("seed"),
        # By time, where the spec names no steps (`trainers/trl/trainer_base.py`).
        "save_strategy": "no" if save_every is None else "steps",
        **({} if save_every is None else {"save_steps": save_every}),
        "save_total_limit": 2,
        "logging_steps": view.integer("log_every"),
        "logging_first_step": True,
        "logging_nan_inf_filter": False,
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        "ddp_find_unused_parameters": False,
    }


def _preference_loss(view: StageView) -> dict[str, Json]:
    """`loss_type`, `loss_weights` and `label_smoothing` of DPOConfig.

    TRL 1.16 ignores label_smoothing in its `sigmoid` loss. Conservative DPO with share e is
    2(1 - e) sigmoid - (1 - 2e) robust, which those three arguments can say.
    """
    loss = view.text("loss")
    smoothing = view.number("label_smoothing")
    mean = view.flag("mean_log_prob")
    nll_weight = view.number("nll_weight")
    terms: list[Json] = [loss]
    weights: list[Json] = [1.0]
    if loss == "ipo" and not mean:
        view.refuse(
            "loss",
            "TRL's ipo divides log-probabilities by the number of trained tokens",
            capability="ipo_sum",
            fix="set mean_log_prob: true to say so",
        )
    if loss == "hinge" and mean:
        view.refuse(
            "mean_log_prob",
            "TRL has no hinge loss on mean log-probabilities",
            capability="hinge_mean",
            fix="use loss: sigmoid or ipo, or leave mean_log_prob out",
        )
    if smoothing and (loss != "sigmoid" or mean):
        view.refuse(
            "label_smoothing",
            "trl.dpo smooths only the sigmoid loss on summed log-probabilities",
            capability="label_smoothing_any",
            fix="use loss: sigmoid without mean_log_prob, or leave label_smoothing out",
        )
    if smoothing >= 0.5:
        view.refuse("label_smoothing", "must be below 0.5", fix="set a share such as 0.1")
    elif smoothing and loss == "sigmoid":
        terms = ["sigmoid", "robust"]
        weights = [2 * (1 - smoothing), -(1 - 2 * smoothing)]
    elif mean and loss == "sigmoid":
        terms = ["sigmoid_norm"]
    if nll_weight:
        terms.append("sft")
        weights.append(nll_weight)
    return {"loss_type": terms, "loss_weights": weights, "label_smoothing": smoothing}


_TRAINER = frozenset(
    {
        "lora",
        "fractional_alpha",
        "resume",
        "multiprocess",
        "multinode",
        "sharding",
        "offload",
        "observation_mask",
        "after_prompt",
        "float32",
        "bfloat16",
    }
)

SFT = StageBackend(
    id="trl.sft",
    kind="sft",
    version=2,
    doc="Supervised fine-tuning with TRL's SFTTrainer, on rows masked by agentc.",
    software=TORCH,
    lower=_lower_sft,
    capabilities=_TRAINER | {"min_reward", "marked"},
    memory=sft_memory,
)

DPO = StageBackend(
    id="trl.dpo",
    kind="dpo",
    version=2,
    doc="Direct preference optimisation with TRL's DPOTrainer, on pairs masked by agentc: "
    "observations inside a continuation are not scored.",
    software=TORCH,
    lower=_lower_dpo,
    capabilities=_TRAINER
    | {
        "nll_weight",
        "nll_whole",
        "nll_token",
        "nll_row",
        "mean_log_prob",
        "label_smoothing",
        "score_on_completion",
        "ipo",
        "hinge",
    },
    memory=dpo_memory,
)

CRITIC = StageBackend(
    id="trl.critic",
    kind="critic",
    version=2,
    doc="A critic of trajectories by log-ratios (TRL's DPOTrainer, with a weight for each token) "
    "or by a value head (transformers' Trainer), which may read hidden texts of tasks.",
    software=TORCH,
    lower=_lower_critic,
    capabilities=_TRAINER | {"nll_weight", "value_head"},
    memory=critic_memory,
)
