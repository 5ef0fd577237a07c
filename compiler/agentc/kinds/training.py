"""The trainers `sft`, `dpo` and `critic`, with the fields that training backends share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.kinds.artifacts import (
    CHECKPOINT,
    CRITIC_CHECKPOINT,
    PREFERENCE_PAIRS,
    PRIVILEGED_INFORMATION,
    SFT_DATASET,
    TRAJECTORIES,
)
from agentc.kinds.field import Role
from agentc.kinds.interaction import START
from agentc.kinds.kind import Kind
from agentc.kinds.settings import fields_of
from agentc.program.settings import only_with, only_with_input, setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSettings:
    """Low-rank adapters."""

    rank: int = setting("Rank of the adapters.", 8, minimum=1)
    alpha: float = setting("Scaling numerator.", 16.0, above=0)
    dropout: float = setting("Dropout on the adapter input.", 0.0, minimum=0, maximum=0.99)
    targets: tuple[str, ...] = setting(
        "Names of the adapted modules; all linear layers when empty.", ())


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class RowLimits:
    """How long a row may be."""

    max_length: int = setting("Longest row in tokens, prompt included.", minimum=8)
    truncation: Literal["error", "drop", "right"] = setting(
        "What happens to a longer row: `error` fails the stage (rows that a policy played: see "
        "max_dropped), `drop` leaves the row out, `right` cuts its end. Each is counted in the "
        "artifact.", "error")
    max_dropped: float = setting(
        "Under `truncation: error`: the largest share of the rows, or pairs, that may be left "
        "out because a policy played episodes longer than max_length; a larger share fails the "
        "stage.", 0.1, minimum=0, maximum=1)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class TrainingLength:
    """How long training lasts, and what it saves."""

    epochs: float = setting("Passes over the data.", 1.0, above=0)
    max_steps: int | None = setting(
        "Stop after this many optimiser steps; null: by epochs.", None, minimum=1)
    save_every: int | None = setting(
        "Steps between resumable checkpoints; null: as often as costs a twentieth of the time.",
        None, minimum=1, identity="placement")
    save_dtype: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "Numeric type of the weights in the finished checkpoint; `auto`: the backend's own, "
        "which its page names.", "auto")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class EmptyInput:
    """What happens where no row is left."""

    on_empty: Literal["error", "keep_model"] = setting(
        "Not one row is left to train on: `error` fails the stage, `keep_model` hands the model "
        "on as it is, with a note in the artifact and the report.", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings(RowLimits, TrainingLength, EmptyInput):
    """What all trainers of rows have."""

    lr: float = setting("Peak learning rate.", above=0)
    global_batch: int = setting(
        "Rows (or pairs) in one optimiser step, over all processes.", minimum=1)
    micro_batch: int | None = setting(
        "Rows (or pairs) that one process handles at once; must divide global_batch / processes.",
        None, minimum=1, identity="placement")
    processes: int = setting(
        "Training processes (data parallel).", 1, minimum=1, identity="placement")
    scheduler: Literal["linear", "cosine", "constant", "constant_with_warmup"] = setting(
        "Shape of the learning rate.", "linear")
    warmup_ratio: float = setting("Share of the steps spent warming up.", 0.0, minimum=0, maximum=1)
    weight_decay: float = setting("Decoupled weight decay.", 0.0, minimum=0)
    adam_beta1: float = setting("First AdamW coefficient.", 0.9, minimum=0, below=1)
    adam_beta2: float = setting("Second AdamW coefficient.", 0.999, minimum=0, below=1)
    max_grad_norm: float = setting("Gradient clipping norm; 0 turns it off.", 1.0, minimum=0)
    dtype: Literal["float32", "bfloat16"] = setting(
        "Numeric type of the training computation.", "float32")
    gradient_checkpointing: bool = setting("Trade time for memory.", False, identity="placement")
    sharding: Literal["none", "optimizer", "full"] = setting(
        "What the processes divide among themselves: `none`, each holds a whole model with its "
        "gradients and optimiser state; `optimizer`, these two are divided, and the weights while "
        "nothing is computed; `full`, weights too, gathered layer by layer as they are needed.",
        "none", identity="placement")
    offload: bool = setting(
        "Keep what is divided in the host's memory, and update the weights there; slow.", False,
        identity="placement")
    attention: Literal["auto", "eager", "sdpa", "flash"] = setting(
        "Implementation of attention; `auto` is `sdpa`, PyTorch's own. `flash` takes the "
        "package flash-attn.", "auto", identity="placement")
    seed: int = setting("Seed of shuffling and dropout.", 0, seed=True)
    log_every: int = setting("Steps between progress lines.", 1, minimum=1, identity="metadata")
    lora: LoraSettings | None = setting(
        "Train low-rank adapters instead of all weights; merged into the checkpoint when done.",
        None)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class RowChoice:
    """Which rows are imitated."""

    min_reward: float | None = setting(
        "Leave out trajectories below this reward; null keeps all.", None)
    keep_best: float | None = setting(
        "Of what `min_reward` leaves, over all data inputs, keep this share of the "
        "trajectories, rounded down, with the largest rewards; of equal ones the earlier "
        "(filtered behaviour cloning). null: keep all.", None, above=0, maximum=1)
    best_per_task: int | None = setting(
        "Of each task (by its id, over all data inputs), keep N trajectories with the "
        "largest rewards; of equal ones the earlier. null: keep all.", None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SftSettings(TrainingSettings, RowChoice):
    """Settings of `sft`."""

    loss_on: Literal["all_replies", "after_prompt", "marked"] = setting(
        "Which assistant turns are trained: `all_replies`; `after_prompt` to leave out the "
        "replies inside the prompt (such as an acknowledging OK); `marked`, those after the "
        "prompt that the data do not mark `loss: false` (such as the bad part of a revision).",
        "all_replies")
    packing: bool = setting("Pack several rows into one sequence.", False)


_WITH_LIKELIHOOD = only_with("nll_weight", because="no likelihood is added without `nll_weight`")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class Likelihood:
    """How the log-likelihood beside a preference loss is counted."""

    nll_on: Literal["chosen", "whole"] = setting(
        "Whose log-likelihood nll_weight adds: the `chosen` side's trained tokens, or the "
        "`whole` chosen row's, prompt and observations included (SWEET-RL's command).", "chosen",
        only_if=_WITH_LIKELIHOOD)
    nll_reduction: Literal["auto", "token", "row"] = setting(
        "What that log-likelihood is a mean over: each `token` of a step alike, or each `row` "
        "alike, of the means of its tokens; `auto`: as the backend has it, `token` with trl and "
        "`row` with openrlhf.", "auto", only_if=_WITH_LIKELIHOOD)


@dataclass(frozen=True, slots=True, kw_only=True)
class DpoSettings(TrainingSettings, Likelihood):
    """Settings of `dpo`."""

    beta: float = setting("Strength of the KL constraint.", above=0)
    loss: Literal["sigmoid", "hinge", "ipo"] = setting("Preference loss.", "sigmoid")
    label_smoothing: float = setting(
        "Assumed share of flipped labels (conservative DPO).", 0.0, minimum=0, maximum=0.5)
    nll_weight: float = setting(
        "Weight of the log-likelihood of the chosen side added to the loss.", 0.0, minimum=0)
    mean_log_prob: bool = setting(
        "Divide log-probabilities by the number of trained tokens.", False)
    score_on: Literal["assistant", "completion"] = setting(
        "Which tokens enter the log-ratio: the assistant's only, or every token after the "
        "prompt, observations included (what stock TRL and OpenRLHF do).", "assistant")


_LOG_RATIO = only_with(
    "parameterisation", "log_ratio", because="a value head is no log-ratio")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class CriticScore:
    """How a critic scores trajectories."""

    beta: float | None = setting(
        "What a difference of scores is multiplied by in the loss. `bradley_terry` needs it; "
        "`binary_cross_entropy` compares no scores.", None, above=0)
    objective: Literal["bradley_terry", "binary_cross_entropy"] = setting(
        "`bradley_terry`: the better trajectory of a pair is to have the larger score; "
        "`binary_cross_entropy`: the score of each turn predicts the reward of its episode, "
        "from 0 to 1 (SWEET-RL, figure 3a, `Value Function`; value_head).", "bradley_terry")
    parameterisation: Literal["log_ratio", "value_head"] = setting(
        "What a score is: `log_ratio`, of log-probabilities under the critic and under its "
        "reference; `value_head`, the output of a linear layer (table 3, `Regression Head`).",
        "log_ratio")
    normalisation: Literal["turn", "trajectory", "none"] = setting(
        "How log-ratios of tokens become the score of a trajectory: `turn`, the sum over turns "
        "of the mean over a turn's tokens (equations 2 and 3); `trajectory`, the mean over all "
        "tokens (the released code); `none`, the sum.", "turn", only_if=_LOG_RATIO)
    reference_sees: Literal["privileged", "history"] = setting(
        "Whether the reference, too, reads the hidden text, or only the history.", "privileged",
        only_if=(_LOG_RATIO, only_with_input(
            "privileged", because="there is no `privileged` input that it could read")))
    template: str = setting(
        "The words around the hidden text, which takes the place of `{privileged}`.",
        "In light that the final answer is: {privileged}.", pattern=r"\{privileged\}",
        only_if=only_with_input(
            "privileged", because="there is no `privileged` input whose texts it could hold"))
    template_at: Literal["first_message", "before_begin_of_text"] = setting(
        "Where these words are: in the `first_message`, before its own text and an empty line, "
        "or `before_begin_of_text`: before the first token of the conversation, with nothing "
        "between (the released code; log_ratio).", "first_message",
        only_if=only_with_input(
            "privileged", because="there is no `privileged` input whose texts it could place"))
    pooling: Literal["mean", "last"] = setting(
        "Of which tokens' states the head makes a score: the `mean` over the row, or the `last` "
        "one (value_head).", "mean", only_if=only_with(
            "parameterisation", "value_head", because="log-ratios pool no states"))


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class CriticLikelihood:
    """The log-likelihood beside a critic's loss."""

    nll_weight: float = setting(
        "Weight of the log-likelihood of the chosen side added to the loss.", 0.0, minimum=0,
        only_if=_LOG_RATIO)
    nll_reduction: Literal["token", "row"] = setting(
        "What that log-likelihood is a mean over: each `token` of a step alike, or each `row` "
        "alike, of the means of its tokens (the released code).", "token",
        only_if=(_LOG_RATIO, _WITH_LIKELIHOOD))


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticSettings(TrainingSettings, CriticScore, CriticLikelihood):
    """Settings of `critic`."""
# fmt: on


TRAINING_KINDS: tuple[Kind, ...] = (
    Kind(
        name="sft",
        doc="Supervised fine-tuning on conversations; loss on assistant tokens only.",
        example="{kind: sft, model: base, data: expert, lr: 2e-5, global_batch: 16, "
        "max_length: 2048}",
        produces=CHECKPOINT,
        roles=(
            START,
            Role(
                name="data",
                accepts=(TRAJECTORIES, SFT_DATASET, PREFERENCE_PAIRS),
                doc="What to imitate; of pairs the chosen side.",
                many=True,
            ),
        ),
        fields=fields_of(SftSettings),
        default_backend="trl.sft",
        trains=True,
        forecast="training",
    ),
    Kind(
        name="dpo",
        doc="Direct preference optimisation on pairs of continuations.",
        example="{kind: dpo, model: sft, data: pair, beta: 0.1, lr: 1e-6, global_batch: 16, "
        "max_length: 2048}",
        produces=CHECKPOINT,
        roles=(
            START,
            Role(
                name="reference",
                accepts=(CHECKPOINT,),
                doc="The frozen reference; the starting policy when absent.",
                optional=True,
            ),
            Role(name="data", accepts=(PREFERENCE_PAIRS,), doc="The pairs.", many=True),
        ),
        fields=fields_of(DpoSettings),
        default_backend="trl.dpo",
        trains=True,
        forecast="training",
    ),
    Kind(
        name="critic",
        doc="Train a model that scores trajectories, on pairs of them and what only it may know "
        "(SWEET-RL, section 4).",
        example="{kind: critic, model: base, data: pair, beta: 0.1, lr: 1e-6, global_batch: 8, "
        "max_length: 2048}",
        produces=CRITIC_CHECKPOINT,
        roles=(
            START,
            Role(
                name="reference",
                accepts=(CHECKPOINT,),
                doc="What log-ratios are against; the model to start from when absent.",
                optional=True,
            ),
            Role(name="data", accepts=(PREFERENCE_PAIRS,), doc="The pairs.", many=True),
            Role(
                name="privileged",
                accepts=(PRIVILEGED_INFORMATION,),
                doc="Hidden texts of the tasks; without them the critic knows what the agent knew.",
                optional=True,
            ),
        ),
        fields=fields_of(CriticSettings),
        default_backend="trl.critic",
        trains=True,
        forecast="training",
    ),
)
