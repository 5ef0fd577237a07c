"""Fields of `evaluate`, `compare` and `judge`."""

from agentc.kinds.field import Field, number
from agentc.kinds.interaction import ROLLOUT_FIELDS

_INTERVAL: tuple[Field, ...] = (
    number("confidence", "Coverage of the intervals.", 0.95, above=0, maximum=0.9999),
)

EVALUATE_FIELDS: tuple[Field, ...] = (
    *ROLLOUT_FIELDS,
    number(
        "success_at",
        "Reward from which an episode is a success; null: the environment's own predicate.",
        None,
        nullable=True,
    ),
    *_INTERVAL,
)

COMPARE_FIELDS: tuple[Field, ...] = _INTERVAL

JUDGE_FIELDS: tuple[Field, ...] = (
    number("confidence", "Coverage of the intervals.", 0.95, minimum=0.5, maximum=0.9999),
    number(
        "power",
        "Share of runs in which a difference of the size called detectable would be noticed.",
        0.8,
        minimum=0.5,
        maximum=0.9999,
    ),
)
