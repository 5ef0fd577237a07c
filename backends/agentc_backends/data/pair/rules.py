"""The settings of pair building, and the counts that say what became of every trajectory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


class PairError(ValueError):
    """The trajectories cannot be paired as the stage asks; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRules:
    """PAIR_FIELDS of `agentc.kinds.interaction`, by the same names."""

    margin: float
    on_tie: Literal["drop", "error"]
    on_null: Literal["drop", "zero", "error"]
    directions: Literal["both", "lose_only"]
    max_extra_rounds: int | None
    prompt_from: Literal["winner", "expert", "explorer"]
    sources: Literal["expert", "self", "expert_and_self"]
    max_per_task: int | None
    seed: int
    contrast: Literal["trajectory", "step", "rest"] = "trajectory"
    margin_is: Literal["above", "at_least"] = "above"
    chosen_at_least: float | None = None
    chosen: Literal["any", "best"] = "any"

    def is_tie(self, difference: float) -> bool:
        """Whether two rewards so far apart make no pair. Floats are compared as they are, as in
        the released code of SWEET-RL: 0.8 - 0.7 is at least 0.1, and 0.7 - 0.6 is not."""
        if self.margin_is == "at_least":
            return abs(difference) < self.margin
        return abs(difference) <= self.margin

    def may_be_chosen(self, reward: float) -> bool:
        """Whether a trajectory with this reward, which may be a sum of floats, can be chosen."""
        return self.chosen_at_least is None or reward >= self.chosen_at_least - 1e-9

    @property
    def with_expert(self) -> bool:
        return self.sources != "self"

    @property
    def with_self(self) -> bool:
        return self.sources != "expert"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A row of trajectories.jsonl, cut into prompt and continuation.

    `continuation` starts and ends with the agent. `forgotten` of its turns were no longer before
    the policy when it ended (`on_overflow: drop_oldest`). `place` is (number of the input, number
    of the row): the order in which things are paired. `given` of its turns are those of the
    trajectory `origin`, from which it went on; None for one that began at the start.
    """

    id: str
    task_id: str
    attempt: int
    prompt_seed: int | None
    reward: float | None
    prompt: tuple[Mapping[str, str], ...]
    continuation: tuple[Mapping[str, str], ...]
    place: tuple[int, int]
    forgotten: int = 0
    given: int | None = None
    origin: str = ""

    @property
    def turns(self) -> int:
        return (len(self.continuation) + 1) // 2

    def begins_as(self, other: Trajectory, turns: int) -> bool:
        """Whether the first `turns` replies of both are the same."""
        return self.beginning(turns) == other.beginning(turns)

    def beginning(self, turns: int) -> tuple[str, ...]:
        """The first `turns` replies, as later turns saw them."""
        return tuple(m["content"] for m in self.continuation[: 2 * turns : 2])

    @property
    def task_message(self) -> Mapping[str, str]:
        return self.prompt[-1]


@dataclass(slots=True)
class PairCounts:
    """What happened: `compared` by outcome (win, tie, lose, and their self-play counterparts),
    `skipped` by reason."""

    compared: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    rejected_cut: int = 0
    # Ids of pairs with a side that was acted without all of its turns; how many were kept.
    shortened: set[str] = field(default_factory=set)
    forgotten: int = 0

    def facts(self, pairs: int) -> dict[str, Any]:
        """As they stand in the manifest; the three outcomes and `null` are always present."""
        compared = {name: self.compared[name] for name in ("win", "tie", "lose")}
        compared |= {name: n for name, n in sorted(self.compared.items()) if n}
        return {
            **compared,
            "null": self.skipped["null_reward"],
            "skipped": {name: n for name, n in sorted(self.skipped.items()) if n},
            "rejected_cut": self.rejected_cut,
            "forgotten": self.forgotten,
            "pairs": pairs,
        }
