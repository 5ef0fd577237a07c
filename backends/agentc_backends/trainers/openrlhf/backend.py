"""Declares `openrlhf.sft` and `openrlhf.dpo` and lowers their stages to flags of OpenRLHF 0.11.2's
commands `openrlhf.cli.train_sft` and `train_dpo`.

The job adds only the flags that say where things are, and how often to save where the spec leaves
that open. What OpenRLHF has no flag for, or a flag that it never reads, is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.backend_api.memory import ALWAYS, Held, Logits, MemoryQuestion, TrainerMemory
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc.kinds.training import Likelihood, RowChoice, TrainingLength
from agentc.program.settings import setting
from agentc_backends.software import OPENRLHF
from agentc_backends.trainers.common.checks import attention_implementation
from agentc_backends.trainers.common.lowering import (
    adapter_weights,
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

_LOGITS = 12
"""Bytes of a score: in float32, with its gradient and that of the piece it was summed in."""


def sft_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of openrlhf.sft."""
    return _memory(question, pairs=False)


def dpo_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of openrlhf.dpo: both sides of a pair at once, and a reference all the time."""
    return _memory(question, pairs=True)


def _memory(question: MemoryQuestion, *, pairs: bool) -> TrainerMemory:
    rows, _ = rows_at_once(question, None)
    given, adapters = stage_in(question), adapter_weights(question)
    stage = given if isinstance(given, int) else 2
    held = [*zero_held(question, stage, weights=2)]
    if pairs:
        split = stage == 3
        held.append(Held(name="reference", width=2, of="reference", split=split, at=ALWAYS))
    return TrainerMemory(
        held=tuple(held),
        processes=training_processes(question),
        sequences=2 * rows if pairs else rows,
        length=question.integer("max_length", 1),
        flow=2,
        residual=2,
        logits=Logits(_LOGITS),
        checkpointing=question.flag("gradient_checkpointing"),
        gathered=2 if stage == 3 else 0,
        loaded=4 if pairs else 2,
        checkpoint=2 if adapters else 14,
        adapters=adapters,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRlhfOptions:
    """Options of both backends."""

    zero_stage: int = setting(
        "DeepSpeed ZeRO stage: what the processes share of optimiser state (1), gradients (2) and "
        "weights (3). `sharding: optimizer` is stage 2, `full` stage 3; without it this decides.",
        2,
        # Stage 0 would train without float32 copies of the weights, with another result.
        minimum=1,
        maximum=3,
        identity="placement",
    )


def _lower_sft(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    if view.flag("packing"):
        view.refuse(
            "packing",
            "openrlhf.sft packs with flash attention only, which its environment does not hold",
            capability="packing",
            fix="leave it out; rows of a step are batched by length",
        )
    config: dict[str, Json] = {
        **_shared(view),
        "mask": token_mask(view, view.text("loss_on")),
        **view.config_of(RowChoice),
    }
    return (training_job(view, SFT, config),)


def _lower_dpo(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    config = _shared(view)
    flags = config["flags"]
    assert isinstance(flags, list)
    flags += _preference_loss(view)
    config["mask"] = token_mask(view, view.text("score_on"))
    return (training_job(view, DPO, config),)


def _shared(view: StageView) -> dict[str, Json]:
    """`flags` of both commands, and what the job itself does: how often rows are seen, and when a
    checkpoint is due (null: ten times in the run)."""
    micro_batch, _ = micro_batches(view, None)
    scheduler, warmup = warmed_schedule(view)
    stage, _ = zero_stage(view)
    flags: list[Json] = [
        *("--train.batch_size", str(view.integer("global_batch"))),
        *("--train.micro_batch_size", str(micro_batch)),
        # The job lays out the whole training as one pass: OpenRLHF drops an epoch's last rows.
        *("--train.max_epochs", "1"),
        *("--train.seed", str(view.integer("seed"))),
        *("--adam.lr", _decimal(view.number("lr"))),
        *("--adam.betas", _decimal(view.number("adam_beta1")),
          _decimal(view.number("adam_beta2"))),
        *("--adam.eps", "1e-08"),
        *("--adam.weight_decay", _decimal(view.number("weight_decay"))),
        *("--lr_scheduler", scheduler, "--lr_warmup_ratio", _decimal(warmup)),
        *("--max_norm", _decimal(view.number("max_grad_norm"))),
        *("--ds.param_dtype", _dtype(view)),
        *("--ds.attn_implementation", attention_implementation(view.text("attention"))),
        *("--ds.zero_stage", str(stage)),
        *(("--ds.adam_offload",) if view.flag("offload") else ()),
        *("--logger.logging_steps", str(view.integer("log_every"))),
        *_adapters(view, stage),
    ]  # fmt: skip
    if view.flag("gradient_checkpointing"):
        flags.append("--model.gradient_checkpointing_enable")
    return {"flags": flags, **view.config_of(TrainingLength)}


def _decimal(number: float) -> str:
    """The shortest text that reads back as the same float."""
    return repr(number)


def _dtype(view: StageView) -> str:
    if view.text("dtype") == "float32":
        view.refuse(
            "dtype",
            "OpenRLHF trains in bfloat16 (with float32 copies of the weights in the optimiser)",
            capability="float32",
            fix="set dtype: bfloat16",
        )
    return "bf16"


def _adapters(view: StageView, stage: Json) -> tuple[str, ...]:
    if view.get("lora") is None:
        return ()
    alpha = view.number("lora.alpha")
    if alpha != int(alpha):
        view.refuse(
            "lora.alpha",
            "OpenRLHF takes whole numbers only",
            capability="fractional_alpha",
            fix=f"set {round(alpha) or 1}",
        )
    if stage == 3:
        said = view.text("sharding") == "full"
        view.refuse(
            "sharding" if said else "zero_stage",
            "with ZeRO stage 3 OpenRLHF writes adapters in a format that can run code when read",
            fix=f"set {'sharding: optimizer' if said else 'zero_stage: 2'}; adapters leave little "
            "to share",
        )
    targets = view.get("lora.targets")
    assert isinstance(targets, (list, tuple))
    if any(str(name).startswith("-") for name in targets):
        view.refuse("lora.targets", "a name of a module does not begin with a dash")
    return (
        *("--ds.lora.rank", str(view.integer("lora.rank"))),
        *("--ds.lora.alpha", str(int(alpha))),
        *("--ds.lora.dropout", _decimal(view.number("lora.dropout"))),
        *(("--ds.lora.target_modules", *map(str, targets)) if targets else ()),
    )


def _preference_loss(view: StageView) -> tuple[str, ...]:
    loss = view.text("loss")
    smoothing = view.number("label_smoothing")
    nll_weight = view.number("nll_weight")
    if loss == "hinge":
        view.refuse(
            "loss",
            "OpenRLHF has the sigmoid loss and ipo",
            capability="hinge",
            fix="use loss: sigmoid",
        )
    if view.flag("mean_log_prob"):
        view.refuse(
            "mean_log_prob",
            "OpenRLHF sums log-probabilities",
            capability="mean_log_prob",
            fix="leave it out",
        )
    if smoothing and loss == "ipo":
        view.refuse(
            "label_smoothing",
            "OpenRLHF does not read it with ipo",
            capability="label_smoothing_ipo",
            fix="use loss: sigmoid, or leave label_smoothing out",
        )
    _likelihood(view)
    if 0 < nll_weight <= 1e-8:
        view.refuse("nll_weight", "OpenRLHF takes so small a weight for none", fix="leave it out")
    return (
        *("--model.beta", _decimal(view.number("beta"))),
        *(("--model.ipo_enable",) if loss == "ipo" else ()),
        *("--model.label_smoothing", _decimal(smoothing)),
        *("--model.nll_loss_coef", _decimal(nll_weight)),
    )


def _likelihood(view: StageView) -> None:
    """OpenRLHF has one way to count it: the mean over pairs of the mean over the scored tokens."""
    counted = view.config_of(Likelihood)
    if counted.get("nll_on") == "whole":
        view.refuse(
            "nll_on",
            "OpenRLHF takes the likelihood of the tokens that the preference scores",
            capability="nll_whole",
            fix="leave it out",
        )
    if counted.get("nll_reduction") == "token":
        view.refuse(
            "nll_reduction",
            "OpenRLHF takes the mean of each chosen side, and then of these",
            capability="nll_token",
            fix="set nll_reduction: row to say so",
        )


_TRAINER = frozenset(
    {
        "bfloat16_weights",
        "lora",
        "resume",
        "multiprocess",
        "observation_mask",
        "after_prompt",
        "bfloat16",
        "zero",
        "sharding",
        "offload",
    }
)

SFT = StageBackend(
    id="openrlhf.sft",
    example="dtype: bfloat16",
    kind="sft",
    version=2,
    doc="Supervised fine-tuning with OpenRLHF's SFTTrainer and DeepSpeed, in bfloat16, on rows "
    "masked by agentc.",
    software=OPENRLHF,
    lower=_lower_sft,
    capabilities=_TRAINER | {"min_reward", "marked"},
    options=fields_of(OpenRlhfOptions),
    memory=sft_memory,
)

DPO = StageBackend(
    id="openrlhf.dpo",
    example="dtype: bfloat16",
    kind="dpo",
    version=2,
    doc="Direct preference optimisation with OpenRLHF's DPOTrainer and DeepSpeed, in bfloat16, on "
    "pairs masked by agentc: observations inside a continuation are not scored.",
    software=OPENRLHF,
    lower=_lower_dpo,
    capabilities=_TRAINER
    | {"nll_weight", "nll_row", "label_smoothing", "score_on_completion", "ipo", "ipo_sum"},
    options=fields_of(OpenRlhfOptions),
    memory=dpo_memory,
)
