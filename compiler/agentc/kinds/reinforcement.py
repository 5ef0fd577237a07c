"""The kinds that learn from rewards, `online_rl` and `offline_rl`, and `checkpoint`, which picks a
policy of a run, with their fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agentc.kinds.artifacts import CHECKPOINT, POLICY_RUN, TEXT_ENCODER, TRAJECTORIES
from agentc.kinds.field import (
    REQUIRED,
    Field,
    Json,
    Role,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    string,
)
from agentc.kinds.interaction import ENVIRONMENT_AT, LIMIT, POLICY, SPLIT, decoding
from agentc.kinds.kind import Kind

CRITIC = group(
    "critic",
    "How the critic of utterances is trained: two values of a state and a reply, two of a state "
    "(ArCHer, section 3).",
    (
        number("lr", "Learning rate of Adam.", 2e-5, above=0),
        integer("updates", "Gradient steps in an iteration.", 50, minimum=1),
        integer("batch", "Utterances in a step, drawn evenly and with replacement.", 256,
                minimum=1),
        number("target_rate", "Share of the way that the slow copy goes after each step (Polyak).",
               0.1, above=0, maximum=1),
        choice("value_target", "What the value of a state is held to: the slow copy's value of a "
               "reply of the `policy` as it is now (the paper's), of the stored one in the `data` "
               "(SARSA), the episode's own discounted `return`, or the `expectile` of the stored "
               "ones (IQL).",
               ("policy", "data", "return", "expectile"), "policy"),
        number("expectile", "That expectile (value_target: expectile).", 0.9, above=0.5, below=1),
        integer("hidden", "Width of the heads; null: that of the model under them.", None,
                minimum=1, nullable=True),
        choice("pool", "What stands for a text that an `encoder` read: its `pooler`, as released, "
               "the `first` token, the `last` one, or the `mean` of all.",
               ("pooler", "first", "last", "mean"), "pooler"),
        integer("max_length", "Tokens of an `encoder` that are read of a text, its last ones.", 512,
                minimum=8),
        number("start", "What all heads say before the first step. Far from the returns of the "
               "first policy, the first steps would go into the offset alone.", 0.0),
        number("max_grad_norm", "Norm to which the critic's own gradient is clipped; 0: not.", 1.0,
               minimum=0),
    ),
)  # fmt: skip

ACTOR = group(
    "actor",
    "How the policy is trained in each iteration.",
    (
        number("lr", "Learning rate of Adam.", 1e-5, above=0),
        integer("updates", "Gradient steps in an iteration.", 3, minimum=1),
        integer("batch", "Utterances in a step.", 256, minimum=1),
        choice("advantage", "What a fresh reply is weighted with: the smaller value of state and "
               "reply less the smaller one of the state, as it is (`plain`, the paper's), or less "
               "the mean of the step's (`centred`).", ("plain", "centred"), "plain"),
        number("kl_penalty", "Taken off the advantage for each nat by which the policy likes its "
               "reply better than the model that it started from: in units of reward, to be set "
               "beside `advantage.sd` of the curve.", 0.0, minimum=0),
        number("max_grad_norm", "Norm to which the gradient is clipped; 0: not.", 1.0, minimum=0),
    ),
)  # fmt: skip

BUFFER = group(
    "buffer",
    "What is learnt from again: the newest utterances.",
    (
        integer("capacity", "Utterances at most.", 100000, minimum=1),
        integer("episodes", "Of the newest so many episodes alone; null: any.", None, minimum=1,
                nullable=True),
        choice("by", "What a step of critic or actor draws: `utterances`, each for itself; or "
               "whole `episodes`, until they hold a batch or more. A critic on the policy's own "
               "body reads all states of an episode in one pass, so that these cost a fraction of "
               "the time, and vary more from step to step.", ("utterances", "episodes"),
               "utterances"),
    ),
)  # fmt: skip

EVALUATION = group(
    "evaluate",
    "Evaluate the policy within the run: before the first update, every so many iterations, and "
    "at the end.",
    (
        string("split", "Name of the environment's split.", REQUIRED),
        LIMIT,
        integer("every", "Iterations between two evaluations.", 10, minimum=1),
        integer("attempts", "Episodes for each task.", 1, minimum=1),
        number("temperature", "0 is greedy.", 1.0, minimum=0),
        seed("seed", "Base of the sampling seeds."),
    ),
    nullable=True,
)

ONLINE_RL_FIELDS: tuple[Field, ...] = (
    SPLIT,
    LIMIT,
    choice(
        "tasks",
        "Which tasks an iteration plays: `draw`, evenly and with replacement; `cycle`, the split's "
        "in their order, again and again.",
        ("draw", "cycle"),
        "draw",
    ),
    decoding(1.0, 32),
    integer(
        "max_turns",
        "Step limit of an episode; null: the environment's own.",
        None,
        minimum=1,
        nullable=True,
    ),
    choice(
        "on_invalid",
        "A reply without an action: `observe` tells the agent and costs a step, `fail` ends the "
        "episode with the lowest reward.",
        ("observe", "fail"),
        "observe",
    ),
    choice(
        "on_overflow",
        "A prompt longer than the model's context: `error` fails the stage; `drop_oldest` forgets "
        "the oldest observation and the reply after it; `end` ends the episode with the reward so "
        "far, which pays for talking until the context is full wherever each turn costs something.",
        ("error", "drop_oldest", "end"),
        "error",
    ),
    integer(
        "iterations",
        "Rounds of acting and learning; behind a `start`, of this stage.",
        REQUIRED,
        minimum=1,
    ),
    integer("episodes", "Episodes of an iteration.", REQUIRED, minimum=1),
    integer("warmup", "Iterations before the policy's first update.", 0, minimum=0),
    number("discount", "Worth of a reward one turn later.", 0.95, minimum=0, maximum=1),
    BUFFER,
    CRITIC,
    ACTOR,
    EVALUATION,
    Field(
        name="keep",
        schema={"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True},
        doc="Keep the policies after these iterations too, for stages of kind `checkpoint`.",
        default=[],
    ),
    boolean(
        "publish_state",
        "Publish critic and optimisers too, so that another stage can go on from it (`start`); "
        "they take about three times what the models take.",
        True,
    ),
    integer(
        "micro_batch",
        "Rows that go through a model at once.",
        64,
        minimum=1,
        identity="placement",
    ),
    integer("concurrency", "Episodes in flight.", 64, minimum=1, identity="placement"),
    integer(
        "save_every",
        "Iterations between resumable states; null: as often as costs a twentieth of the time.",
        None,
        minimum=1,
        nullable=True,
        identity="placement",
    ),
    seed("seed", "Of all chance: tasks, replies, batches."),
    ENVIRONMENT_AT,
)

NOT_ONLINE = {
    "openrlhf": "OpenRLHF's RL (0.11) imports vLLM, starts its models on Ray workers with GPUs "
    "and calls CUDA by name: none of it runs without GPUs, and the software here has no Ray; "
    "its `sft` and `dpo` are there",
    "verl": "verl's RL trains on Ray workers with GPUs, and 0.9.1 wants transformers below 5.11: "
    "none of it runs without GPUs or beside the software here",
}
"""Trainers of agents that have no backend here, and why."""

CHECKPOINT_FIELDS: tuple[Field, ...] = (
    integer("at", "The iteration after which the policy is taken; null: the last.", None,
            minimum=0, nullable=True),
)  # fmt: skip


# Fields of `offline_rl`: those of `online_rl` that need no acting, with the defaults of the
# released offline code, and what only stored replies have.


def _of(fields: Iterable[Field], *names: str, **defaults: Json) -> tuple[Field, ...]:
    """Those of these names, or all where none is named, with other defaults."""
    return tuple(
        replace(each, default=defaults.get(each.name, each.default))
        for each in fields
        if not names or each.name in names
    )


OFFLINE_CRITIC = group(
    CRITIC.name,
    CRITIC.doc,
    _of(CRITIC.fields, lr=1e-5, batch=128, target_rate=0.05, value_target="expectile"),
)

OFFLINE_ACTOR = group(
    ACTOR.name,
    "How the policy is trained in each iteration, after the critic.",
    (
        choice("objective", "`awr`: imitate stored replies, each weighted by exp(advantage / "
               "temperature), advantage being the smaller value of state and reply less the "
               "smaller one of the state (advantage-weighted regression, the paper's); "
               "`policy_gradient`: weight fresh replies by their advantages, as online.",
               ("awr", "policy_gradient"), "awr"),
        number("temperature", "Of these weights: the lower, the more the best replies count "
               "(objective: awr).", 1.0, above=0),
        number("clip_weight", "The largest weight; null: any (objective: awr).", None, above=0,
               nullable=True),
        *_of(ACTOR.fields, "lr", "updates", "batch", "advantage", "kl_penalty", "max_grad_norm",
             lr=1e-4, updates=50, batch=128),
    ),
)  # fmt: skip

OFFLINE_RL_FIELDS: tuple[Field, ...] = (
    choice(
        "rewards",
        "How rewards of turns make an episode's, as its environment has it: `sum` adds them, "
        "`terminal` takes the last one for the whole, `latest` and `max` say how things stand, so "
        "that a turn earns what it changes. Held against each episode's reward.",
        ("sum", "terminal", "latest", "max"),
        "sum",
    ),
    decoding(1.0, 32),
    integer(
        "iterations",
        "Rounds of learning: all steps of the critic, then all of the policy.",
        REQUIRED,
        minimum=1,
    ),
    *_of(ONLINE_RL_FIELDS, "warmup", "discount", discount=0.99),
    group(BUFFER.name, "How the episodes are learnt from.", _of(BUFFER.fields, "by")),
    OFFLINE_CRITIC,
    OFFLINE_ACTOR,
    *_of(ONLINE_RL_FIELDS, "keep", "publish_state", "micro_batch", "save_every", "seed"),
)

_ENCODER = Role(
    name="encoder",
    accepts=(TEXT_ENCODER,),
    doc="What the critic reads with; without it a copy of the policy's own body.",
    optional=True,
)

REINFORCEMENT_KINDS: tuple[Kind, ...] = (
    Kind(
        name="online_rl",
        doc="Let a policy act and learn in turns, in one job that goes on where it was cut off "
        "(ArCHer and its rivals).",
        produces=POLICY_RUN,
        roles=(
            POLICY,
            _ENCODER,
            Role(
                name="start",
                accepts=(POLICY_RUN,),
                doc="A run that this one goes on from as if it had been longer; `policy` is "
                "still what that one began with.",
                optional=True,
            ),
        ),
        fields=ONLINE_RL_FIELDS,
        uses=("environment", "prompt"),
        default_backend="archer.online_rl",
        without=NOT_ONLINE,
        online=True,
        forecast="reinforcement",
    ),
    Kind(
        name="offline_rl",
        doc="Let a policy learn from rewards of recorded episodes, its own or others', and play "
        "none (offline ArCHer). `evaluate` says what it is worth then.",
        produces=POLICY_RUN,
        roles=(
            Role(name="policy", accepts=(CHECKPOINT,), doc="The model to start from."),
            Role(
                name="data",
                accepts=(TRAJECTORIES,),
                doc="The episodes, with the rewards of their turns. Those that ended in an error "
                "do not count.",
                many=True,
            ),
            _ENCODER,
        ),
        fields=OFFLINE_RL_FIELDS,
        default_backend="archer.offline_rl",
        forecast="experience",
    ),
    Kind(
        name="checkpoint",
        doc="Take a policy out of a run of RL.",
        produces=CHECKPOINT,
        roles=(Role(name="run", accepts=(POLICY_RUN,), doc="The run."),),
        fields=CHECKPOINT_FIELDS,
        default_backend="pick.checkpoint",
    ),
)
