"""The settings of a revision, as the parts of the program take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.kinds.search import JudgeQuestions, RevisionRows, RewardBars, Signal
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import OBSERVATION_PREFIX, ReplyFormat

SplicedPart: TypeAlias = Literal["revision", "direct"]


class ReviseError(FatalError):
    """The trees do not allow what the stage asks for; the message says why."""


@dataclass(frozen=True, kw_only=True)
class RewardThresholds(RewardBars):
    """Which trajectories are good, and which pairs of good and bad ones tell something."""

    alpha: float

    def is_good(self, reward: float) -> bool:
        """Whether a trajectory of this reward passes alpha."""
        return reward > self.alpha or (self.alpha_is == "at_least" and reward == self.alpha)

    def separates(self, good: float, bad: float) -> bool:
        """Whether two rewards are far enough apart, whatever alpha says (Agent-R, eq. 4, and
        `path_collection.py` for the gap)."""
        if self.beta_is == "gap":
            return good - bad > self.beta
        return bad < self.beta < good


@dataclass(frozen=True, kw_only=True)
class JudgeRules(JudgeQuestions):
    """How the actor is asked for its first mistake. Its seeds derive from the stage's."""

    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRules(Signal):
    """The signal, and how replies look."""

    reply_format: ReplyFormat


@dataclass(frozen=True, kw_only=True)
class ReviseRules(RevisionRows):
    """What is made of the trees. `bars` is None where only `optimal` rows are, `judge` where
    nothing is judged, `signal` where no trajectories are spliced, `best_reward` (the environment's
    largest) without `optimal` ones."""

    bars: RewardThresholds | None
    judge: JudgeRules | None = None
    signal: SignalRules | None
    best_reward: float | None
    observation_prefix: str = OBSERVATION_PREFIX
