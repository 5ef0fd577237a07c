"""What a spec says under `search:`: params to choose values of, and the measure they are chosen by.

Neighbours: `front/resolve_search.py` makes it, `agentc.searching` follows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.kinds.field import Json

Direction: TypeAlias = Literal["maximize", "minimize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAxis:
    """The values of one param: `choices`, or the numbers from `low` to `high`, both included.
    `integer`: whole ones only. `log`: each factor is as likely as another. `step`: only `low` and
    steps above it."""

    name: str
    choices: tuple[Json, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    integer: bool = False

    def first(self) -> Json:
        """A value of it, the same one always."""
        if self.choices:
            return self.choices[0]
        assert self.low is not None
        return int(self.low) if self.integer else self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """`axes` are those that `-p` has not taken away. `stage` is as written: in a repeat it means
    that of each round, the last of which gives the value. `startup_trials` are drawn at random and
    never pruned."""

    axes: tuple[SearchAxis, ...]
    stage: str
    metric: str
    direction: Direction
    trials: int
    sampler: str
    pruner: str
    startup_trials: int
    seed: int
