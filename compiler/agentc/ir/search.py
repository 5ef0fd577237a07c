"""What a spec says under `until:` of a repeat and under `search:`: rules that stop rounds, and
params whose values are chosen by a measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from agentc.kinds.field import Json

Ends: TypeAlias = Mapping[tuple[str, tuple[int, ...]], int]
"""How many rounds a repeat has in a cell (by its place on each axis), where it stopped earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """The rounds stop after the first one whose `metric` is at least `reaches`, or after so many in
    a row (`no_gain_for`) that are not better than the best before them by more than `min_gain`.
    None: no such rule; one of the two is there. With `direction: minimize` less is better."""

    metric: str
    direction: Direction = "maximize"
    reaches: float | None = None
    no_gain_for: int | None = None
    min_gain: float = 0.0

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> StoppingRule:
        """As a plan has it."""
        return cls(**value)

    @property
    def earliest(self) -> int:
        """The first round after which it may hold: a gain needs a round to be measured by."""
        return 1 if self.reaches is not None else (self.no_gain_for or 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRounds:
    """Rounds of a repeat that stop by a rule, in the cells whose measures are the same. `most` is
    `n`, the number of rounds at most; `rounds` are the ids of the stages of each planned round,
    `measures` those of the stage that decides."""

    repeat: str
    rule: StoppingRule
    most: int
    rounds: tuple[tuple[str, ...], ...]
    measures: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...] = ((),)

    @property
    def name(self) -> str:
        """`eto`, in a sweep `eto@seed=0`."""
        return self.repeat + "".join(self.measures[0].partition("@")[1:])

    def with_cells_of(self, other: StoppingRounds) -> StoppingRounds:
        """These rounds in the cells of both, whose measures are the same and other stages may
        differ."""
        both = zip(self.rounds, other.rounds, strict=True)
        rounds = tuple(tuple(dict.fromkeys((*one, *another))) for one, another in both)
        return replace(self, rounds=rounds, cells=(*self.cells, *other.cells))


def ended(stopping: Sequence[StoppingRounds]) -> bool:
    """Whether any of them has fewer rounds than the spec allows."""
    return any(len(each.measures) < each.most for each in stopping)


# What a spec says under `search:`: params to choose values of, and the measure they are chosen by.

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
