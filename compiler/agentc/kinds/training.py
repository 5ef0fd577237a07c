"""The trainers `sft`, `dpo` and `critic`, with the fields that training backends share."""

from agentc.kinds.artifacts import (
    CHECKPOINT,
    CRITIC_CHECKPOINT,
    PREFERENCE_PAIRS,
    PRIVILEGED_INFORMATION,
    SFT_DATASET,
    TRAJECTORIES,
)
from agentc.kinds.field import (
    REQUIRED,
    Field,
    Role,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    string,
    strings,
)
from agentc.kinds.kind import Kind

LORA = group(
    "lora",
    "Train low-rank adapters instead of all weights; merged into the checkpoint when done.",
    (
        integer("rank", "Rank of the adapters.", 8, minimum=1),
        number("alpha", "Scaling numerator.", 16.0, above=0),
        number("dropout", "Dropout on the adapter input.", 0.0, minimum=0, maximum=0.99),
        strings("targets", "Names of the adapted modules; all linear layers when empty."),
    ),
    nullable=True,
)

_SHARED: tuple[Field, ...] = (
    number("lr", "Peak learning rate.", REQUIRED, above=0),
    number("epochs", "Passes over the data.", 1.0, above=0),
    integer(
        "max_steps",
        "Stop after this many optimiser steps; null: by epochs.",
        None,
        minimum=1,
        nullable=True,
    ),
    integer(
        "global_batch",
        "Rows (or pairs) in one optimiser step, over all processes.",
        REQUIRED,
        minimum=1,
    ),
    integer(
        "micro_batch",
        "Rows (or pairs) that one process handles at once; must divide global_batch / processes.",
        None,
        minimum=1,
        nullable=True,
        identity="placement",
    ),
    integer("processes", "Training processes (data parallel).", 1, minimum=1, identity="placement"),
    choice(
        "scheduler",
        "Shape of the learning rate.",
        ("linear", "cosine", "constant", "constant_with_warmup"),
        "linear",
    ),
    number("warmup_ratio", "Share of the steps spent warming up.", 0.0, minimum=0, maximum=1),
    number("weight_decay", "Decoupled weight decay.", 0.0, minimum=0),
    number("adam_beta1", "First AdamW coefficient.", 0.9, minimum=0, below=1),
    number("adam_beta2", "Second AdamW coefficient.", 0.999, minimum=0, below=1),
    number("max_grad_norm", "Gradient clipping norm; 0 turns it off.", 1.0, minimum=0),
    integer("max_length", "Longest row in tokens, prompt included.", REQUIRED, minimum=8),
    choice(
        "truncation",
        "What happens to a longer row: `error` fails the stage (rows that a policy played: see "
        "max_dropped), `drop` leaves the row out, `right` cuts its end. Each is counted in the "
        "artifact.",
        ("error", "drop", "right"),
        "error",
    ),
    number(
        "max_dropped",
        "Under `truncation: error`: the largest share of the rows, or pairs, that may be left out "
        "because a policy played episodes longer than max_length; a larger share fails the stage.",
        0.1,
        minimum=0,
        maximum=1,
    ),
    choice(
        "dtype", "Numeric type of the training computation.", ("float32", "bfloat16"), "float32"
    ),
    boolean("gradient_checkpointing", "Trade time for memory.", False, identity="placement"),
    choice(
        "sharding",
        "What the processes divide among themselves: `none`, each holds a whole model with its "
        "gradients and optimiser state; `optimizer`, these two are divided, and the weights while "
        "nothing is computed; `full`, weights too, gathered layer by layer as they are needed.",
        ("none", "optimizer", "full"),
        "none",
        identity="placement",
    ),
    boolean(
        "offload",
        "Keep what is divided in the host's memory, and update the weights there; slow.",
        False,
        identity="placement",
    ),
    choice(
        "attention",
        "Implementation of attention; `auto` is `sdpa`, PyTorch's own. `flash` takes the package "
        "flash-attn.",
        ("auto", "eager", "sdpa", "flash"),
        "auto",
        identity="placement",
    ),
    choice(
        "save_dtype",
        "Numeric type of the weights in the finished checkpoint; `auto`: the backend's own, which "
        "its page names.",
        ("auto", "float32", "bfloat16", "float16"),
        "auto",
    ),
    seed("seed", "Seed of shuffling and dropout."),
    integer(
        "save_every",
        "Steps between resumable checkpoints; null: as often as costs a twentieth of the time.",
        None,
        minimum=1,
        nullable=True,
        identity="placement",
    ),
    integer("log_every", "Steps between progress lines.", 1, minimum=1, identity="metadata"),
    choice(
        "on_empty",
        "Not one row is left to train on: `error` fails the stage, `keep_model` hands the model on "
        "as it is, with a note in the artifact and the report.",
        ("error", "keep_model"),
        "error",
    ),
    LORA,
)

SFT_FIELDS: tuple[Field, ...] = (
    *_SHARED,
    choice(
        "loss_on",
        "Which assistant turns are trained: `all_replies`; `after_prompt` to leave out the replies "
        "inside the prompt (such as an acknowledging OK); `marked`, those after the prompt that "
        "the data do not mark `loss: false` (such as the bad part of a revision).",
        ("all_replies", "after_prompt", "marked"),
        "all_replies",
    ),
    number(
        "min_reward",
        "Leave out trajectories below this reward; null keeps all.",
        None,
        nullable=True,
    ),
    number(
        "keep_best",
        "Of what `min_reward` leaves, over all data inputs, keep this share of the trajectories, "
        "rounded down, with the largest rewards; of equal ones the earlier (filtered behaviour "
        "cloning). null: keep all.",
        None,
        above=0,
        maximum=1,
        nullable=True,
    ),
    integer(
        "best_per_task",
        "Of each task (by its id, over all data inputs), keep so many trajectories with the "
        "largest rewards; of equal ones the earlier. null: keep all.",
        None,
        minimum=1,
        nullable=True,
    ),
    boolean("packing", "Pack several rows into one sequence.", False),
)

DPO_FIELDS: tuple[Field, ...] = (
    *_SHARED,
    number("beta", "Strength of the KL constraint.", REQUIRED, above=0),
    choice("loss", "Preference loss.", ("sigmoid", "hinge", "ipo"), "sigmoid"),
    number(
        "label_smoothing",
        "Assumed share of flipped labels (conservative DPO).",
        0.0,
        minimum=0,
        maximum=0.5,
    ),
    number(
        "nll_weight",
        "Weight of the log-likelihood of the chosen side added to the loss.",
        0.0,
        minimum=0,
    ),
    choice(
        "nll_on",
        "Whose log-likelihood nll_weight adds: the `chosen` side's trained tokens, or the `whole` "
        "chosen row's, prompt and observations included (SWEET-RL's command).",
        ("chosen", "whole"),
        "chosen",
    ),
    choice(
        "nll_reduction",
        "What that log-likelihood is a mean over: each `token` of a step alike, or each `row` "
        "alike, of the means of its tokens; `auto`: as the backend has it, `token` with trl and "
        "`row` with openrlhf.",
        ("auto", "token", "row"),
        "auto",
    ),
    boolean("mean_log_prob", "Divide log-probabilities by the number of trained tokens.", False),
    choice(
        "score_on",
        "Which tokens enter the log-ratio: the assistant's only, or every token "
        "after the prompt, observations included (what stock TRL and OpenRLHF do).",
        ("assistant", "completion"),
        "assistant",
    ),
)

CRITIC_FIELDS: tuple[Field, ...] = (
    *_SHARED,
    number(
        "beta",
        "What a difference of scores is multiplied by in the loss. `bradley_terry` needs it; "
        "`binary_cross_entropy` compares no scores.",
        above=0,
        nullable=True,
    ),
    choice(
        "objective",
        "`bradley_terry`: the better trajectory of a pair is to have the larger score; "
        "`binary_cross_entropy`: the score of each turn is to tell the reward of its episode, from "
        "0 to 1 (SWEET-RL, figure 3a, `Value Function`; value_head).",
        ("bradley_terry", "binary_cross_entropy"),
        "bradley_terry",
    ),
    choice(
        "parameterisation",
        "What a score is: `log_ratio`, of log-probabilities under the critic and under its "
        "reference; `value_head`, the output of a linear layer (table 3, `Regression Head`).",
        ("log_ratio", "value_head"),
        "log_ratio",
    ),
    choice(
        "normalisation",
        "How log-ratios of tokens become the score of a trajectory: `turn`, the sum over turns of "
        "the mean over a turn's tokens (equations 2 and 3); `trajectory`, the mean over all tokens "
        "(the released code); `none`, the sum.",
        ("turn", "trajectory", "none"),
        "turn",
    ),
    choice(
        "reference_sees",
        "Whether the reference, too, reads the hidden text, or the history alone.",
        ("privileged", "history"),
        "privileged",
    ),
    number(
        "nll_weight",
        "Weight of the log-likelihood of the chosen side added to the loss.",
        0.0,
        minimum=0,
    ),
    choice(
        "nll_reduction",
        "What that log-likelihood is a mean over: each `token` of a step alike, or each `row` "
        "alike, of the means of its tokens (the released code).",
        ("token", "row"),
        "token",
    ),
    string(
        "template",
        "The words around the hidden text, which takes the place of `{privileged}`.",
        "In light that the final answer is: {privileged}.",
        pattern=r"\{privileged\}",
    ),
    choice(
        "template_at",
        "Where these words are: in the `first_message`, before its own text and an empty line, or "
        "`before_begin_of_text`: before the first token of the conversation, with nothing between "
        "(the released code; log_ratio).",
        ("first_message", "before_begin_of_text"),
        "first_message",
    ),
    choice(
        "pooling",
        "Of which tokens' states the head makes a score: the `mean` over the row, or the `last` "
        "one (value_head).",
        ("mean", "last"),
        "mean",
    ),
)

TRAINING_KINDS: tuple[Kind, ...] = (
    Kind(
        name="sft",
        doc="Supervised fine-tuning on conversations; loss on assistant tokens only.",
        produces=CHECKPOINT,
        roles=(
            Role(name="model", accepts=(CHECKPOINT,), doc="The model to start from."),
            Role(
                name="data",
                accepts=(TRAJECTORIES, SFT_DATASET, PREFERENCE_PAIRS),
                doc="What to imitate; of pairs the chosen side.",
                many=True,
            ),
        ),
        fields=SFT_FIELDS,
        default_backend="trl.sft",
        trains=True,
        forecast="training",
    ),
    Kind(
        name="dpo",
        doc="Direct preference optimisation on pairs of continuations.",
        produces=CHECKPOINT,
        roles=(
            Role(name="model", accepts=(CHECKPOINT,), doc="The policy to start from."),
            Role(
                name="reference",
                accepts=(CHECKPOINT,),
                doc="The frozen reference; the starting policy when absent.",
                optional=True,
            ),
            Role(name="data", accepts=(PREFERENCE_PAIRS,), doc="The pairs.", many=True),
        ),
        fields=DPO_FIELDS,
        default_backend="trl.dpo",
        trains=True,
        forecast="training",
    ),
    Kind(
        name="critic",
        doc="Train a model that scores trajectories, on pairs of them and what only it may know "
        "(SWEET-RL, section 4).",
        produces=CRITIC_CHECKPOINT,
        roles=(
            Role(name="model", accepts=(CHECKPOINT,), doc="The model to start from."),
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
        fields=CRITIC_FIELDS,
        default_backend="trl.critic",
        trains=True,
        forecast="training",
    ),
)
