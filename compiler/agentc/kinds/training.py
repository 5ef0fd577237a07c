"""Fields of the trainers (`sft`, `dpo`): the vocabulary that training backends share."""

from agentc.kinds.field import (
    REQUIRED,
    Field,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    strings,
)

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
        "What happens to a longer row: `error` fails the stage, `drop` leaves the "
        "row out, `right` cuts its end. Each is counted in the artifact.",
        ("error", "drop", "right"),
        "error",
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
        "Steps between resumable checkpoints; null: a tenth of the run.",
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
