"""The settings of a revision, as the parts of the program take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import ReplyFormat

SplicedPart: TypeAlias = Literal["revision", "direct"]
Draw: TypeAlias = Literal["pair", "published"]


class ReviseError(FatalError):
    """The trees do not allow what the stage asks for; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardThresholds:
    """Which trajectories are good, and which pairs of good and bad ones tell something."""

    alpha: float
    alpha_is: Literal["above", "at_least"]
    beta: float
    beta_is: Literal["gap", "ceiling"]

    def is_good(self, reward: float) -> bool:
        """Whether a trajectory of this reward passes alpha."""
        return reward > self.alpha or (self.alpha_is == "at_least" and reward == self.alpha)

    def tells(self, good: float, bad: float) -> bool:
        """Whether two rewards are far enough apart, whatever alpha says (Agent-R, eq. 4, and
        `path_collection.py` for the gap)."""
        if self.beta_is == "gap":
            return good - bad > self.beta
        return bad < self.beta < good


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRules:
    """The fields of `judge`, by the same names."""

    start: Literal["root", "divergence"]
    unparsed: Literal["bad", "good", "pair"]
    on_no_bad: Literal["whole", "pair"]
    parser: Literal["strict", "published"]
    once_per: Literal["path", "pair"]
    instruction: str | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRules:
    """The fields of `signal`, by the same names, and how replies look."""

    thoughts: tuple[str, ...]
    action: str
    acknowledgement: str
    draw: Draw
    reply_format: ReplyFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseRules:
    """What is made of the trees. `bars` is None where only `optimal` rows are, `signal` where no
    trajectories are spliced, `best_reward` (the environment's largest) without `optimal` ones."""

    parts: tuple[str, ...]
    bars: RewardThresholds | None
    signal: SignalRules | None
    best_reward: float | None
    dedup_good: bool
    dedup_revision: bool
    max_pairs_per_tree: int | None
    max_revision: int | None
    max_good: int | None
    drop_unverified: bool
    seed: int
    observation_prefix: str
