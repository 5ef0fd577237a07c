"""Settings of the algorithms, each declared once: what a spec may write besides the kind's own
(`agentc.kinds.reinforcement`), and what a learner is given. Imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.kinds.reinforcement import CriticSteps
from agentc.program.settings import only_with, setting

RankWith: TypeAlias = Literal["target", "online"]
"""Which critic ranks candidates: the target critic, as released, or the one that is trained."""


_FOLDER = "agentc_backends.trainers.online_rl"
LEARNERS = {
    "archer": f"{_FOLDER}.archer:ArcherLearner",
    "chai": f"{_FOLDER}.archer:ChaiLearner",
    "filtered_bc": f"{_FOLDER}.filtered_bc:FilteredLearner",
    "ppo": f"{_FOLDER}.ppo:PpoLearner",
    "grpo": f"{_FOLDER}.trl:TrlLearner",
    "rloo": f"{_FOLDER}.trl:TrlLearner",
}
"""The learner of each algorithm; its `of` makes it of the settings in a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticPhase(CriticSteps):
    """How a critic learns in an iteration. Where the policy says the best of several `candidates`,
    ranked by `rank_with`, V is trained towards the value of that one."""

    discount: float
    candidates: int = 1
    rank_with: RankWith = "target"


Algorithm: TypeAlias = Literal["grpo", "rloo"]


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """Options of CHAI."""

    candidates: int = setting(
        "Replies that are drawn for each turn, of which the critic says one.", 5, minimum=2)
    rank_with: RankWith = setting(
        "Who ranks them: the slow copy of the critic (the released code's), or the critic itself.",
        "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImitationOptions:
    """Options of filtered behaviour cloning."""

    keep_share: float = setting(
        "The share of the kept episodes, by their returns, that is imitated, and all that are as "
        "good as the worst of it.", 0.1, above=0, maximum=1)
    window: int | None = setting(
        "Only the newest episodes, this many; null: all in the buffer.", None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PpoOptions:
    """Options of PPO (Schulman et al., 2017)."""

    clip: float = setting(
        "How far from 1 the ratio of a token's probabilities, now and when it was drawn, still "
        "counts.", 0.2, above=0)
    value_clip: float | None = setting(
        "How far a value may move in an iteration and still gain by it; null: any way.", None,
        above=0)
    gae_lambda: float = setting(
        "Share of a token's surprise that the token before it is credited with, and so on (GAE): 1 "
        "weighs all that followed, 0 only the next value.", 0.95, minimum=0, maximum=1)
    epochs: int = setting(
        "Times that policy and values go over the episodes of an iteration.", 4, minimum=1)
    entropy_coef: float = setting(
        "Worth of a nat of the entropy of what a token is drawn from, in the policy's loss.", 0.0,
        minimum=0)
    normalise: bool = setting(
        "Take their mean off the advantages of an iteration's tokens, and divide them by their "
        "standard deviation.", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PpoRules(PpoOptions):
    """The same, and whether minibatches are of whole episodes or of single utterances."""

    by: Literal["utterances", "episodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Options of GRPO and RLOO by TRL's trainers. GRPO takes advantages within the group and clips
    each token, RLOO takes them against the mean of the group's others and clips each episode."""

    group: int = setting("Episodes of each drawn task, played side by side.", 8, minimum=2)
    minibatches: int = setting(
        "Gradient steps in one pass over an iteration's episodes; of several passes "
        "`actor.updates` is the steps in all.", 1, minimum=1)
    beta: float = setting(
        "Weight of the divergence from the policy that the run started from: a term of GRPO's "
        "loss, taken off the returns by RLOO. 0 spares that model.", 0.0, minimum=0)
    clip_low: float = setting(
        "How far below 1 the ratio to the policy that played counts.", 0.2, above=0, maximum=1)
    clip_high: float | None = setting("How far above 1; null: as `clip_low`.", None, above=0)
    scale_rewards: Literal["group", "batch", "none"] = setting(
        "Of grpo: advantages are divided by the standard deviation of their `group`, of the whole "
        "`batch`, or by `none`.", "group",
        only_if=only_with("algorithm", "grpo", because="RLOO has `normalise_advantages`"))
    normalise_advantages: bool = setting(
        "Of rloo: advantages of the whole batch are brought to mean 0 and standard deviation 1.",
        False, only_if=only_with("algorithm", "rloo", because="GRPO has `scale_rewards`"))
    loss_type: Literal["grpo", "dapo"] = setting(
        "Of grpo: `grpo` means over each episode's tokens, then over episodes; `dapo` over all "
        "tokens of the iteration alike.", "grpo",
        only_if=only_with("algorithm", "grpo", because="RLOO has one loss"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPhase(GroupOptions):
    """How the policy learns from an iteration's `episodes`: `updates` gradient steps, `minibatches`
    of them in a pass over the episodes."""

    algorithm: Algorithm
    episodes: int
    lr: float
    updates: int
    max_grad_norm: float
# fmt: on
