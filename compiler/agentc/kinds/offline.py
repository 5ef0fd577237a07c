"""Fields of `offline_rl`: those of `online_rl` that need no acting, with the defaults of the
released offline code, and what only stored replies have. Neighbour: `reinforcement.py`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agentc.kinds.field import REQUIRED, Field, Json, choice, group, integer, number
from agentc.kinds.interaction import decoding
from agentc.kinds.reinforcement import ACTOR, BUFFER, CRITIC, ONLINE_RL_FIELDS


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
