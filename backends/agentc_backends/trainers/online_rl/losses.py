"""Losses, targets and advantages of online RL as functions of tensors, and returns to go.

For the critic, a row is one utterance, an action of the upper level (Zhou et al., ArCHer, ICML
2024, sections 3 and 4; docs/design/archer.md gives the released code's names).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def to_go(rewards: Sequence[float], discount: float) -> list[float]:
    """The discounted return from each step on, summed from the end, so that no power of the
    discount is computed."""
    returns: list[float] = []
    following = 0.0
    for reward in reversed(rewards):
        following = reward + discount * following
        returns.append(following)
    return returns[::-1]


@dataclass(frozen=True, slots=True)
class Twin:
    """The values [B] of two heads that are trained in the same way from different weights."""

    first: Tensor
    second: Tensor

    def least(self) -> Tensor:
        """[B], the smaller of the two, against overestimation."""
        return torch.minimum(self.first, self.second)

    def detach(self) -> Twin:
        """The same without gradient."""
        return Twin(self.first.detach(), self.second.detach())

    def __getitem__(self, rows: Tensor) -> Twin:
        return Twin(self.first[rows], self.second[rows])


@dataclass(frozen=True, slots=True)
class CriticLoss:
    """Four means over the batch, each a scalar."""

    q1: Tensor
    q2: Tensor
    v1: Tensor
    v2: Tensor

    @property
    def total(self) -> Tensor:
        """Their sum, which the optimiser descends."""
        return self.q1 + self.q2 + self.v1 + self.v2

    def detach(self) -> CriticLoss:
        """The same without gradient."""
        return CriticLoss(self.q1.detach(), self.q2.detach(), self.v1.detach(), self.v2.detach())


def bellman_targets(reward: Tensor, done: Tensor, discount: float, next_v: Twin) -> Twin:
    """r + discount * V(s') of the target critic; r where the episode ended. Each head has the
    target of its own twin, not the smaller one (as released)."""
    factor = discount * (~done).to(reward.dtype)
    return Twin(reward + factor * next_v.first, reward + factor * next_v.second).detach()


def critic_loss(q: Twin, v: Twin, q_target: Twin, v_target: Twin) -> CriticLoss:
    """Mean squared errors of Q against its Bellman target and of V against an action's value."""
    return CriticLoss(
        _mean_square(q.first - q_target.first),
        _mean_square(q.second - q_target.second),
        _mean_square(v.first - v_target.first),
        _mean_square(v.second - v_target.second),
    )


def expectile_critic_loss(
    q: Twin, v: Twin, q_target: Twin, data_q: Twin, expectile: float
) -> CriticLoss:
    """The same with V as an expectile of the target critic's Q over the actions of the data (IQL):
    near the best of these actions, without a value of any other action."""
    return CriticLoss(
        _mean_square(q.first - q_target.first),
        _mean_square(q.second - q_target.second),
        expectile_loss(data_q.first - v.first, expectile),
        expectile_loss(data_q.second - v.second, expectile),
    )


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """Mean of squares, weighted by `expectile` where the difference is positive and by
    1 - `expectile` elsewhere; half a mean square at 0.5."""
    weight = torch.where(difference > 0, expectile, 1 - expectile)
    return (weight * difference.square()).mean()


def advantage(q: Twin, v: Twin) -> Tensor:
    """[B]: min(Q1, Q2) - min(V1, V2), without gradient; neither clipped nor normalised."""
    return (q.least() - v.least()).detach()


def policy_gradient_loss(log_probs: Tensor, mask: Tensor, advantage: Tensor) -> Tensor:
    """-mean over rows of advantage * log p(utterance). `log_probs` and `mask` are [B, T], of the
    utterance's tokens; the mask is 1 where a token is trained."""
    return -((log_probs * mask).sum(dim=1) * advantage).mean()


def advantage_weights(advantage: Tensor, temperature: float, most: float | None) -> Tensor:
    """exp(advantage / temperature) [B], at most `most`: the weight of each imitated row (AWR)."""
    weights = (advantage / temperature).exp()
    return weights if most is None else weights.clamp(max=most)


def imitation_loss(log_probs: Tensor, mask: Tensor, weights: Tensor | None = None) -> Tensor:
    """-mean over rows of log p(utterance), times the row's weight where `weights` are given."""
    totals = (log_probs * mask).sum(dim=1)
    return -(totals if weights is None else totals * weights).mean()


def clipped_loss(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """PPO's loss over tokens: -mean of the smaller of ratio * A and clipped ratio * A, where the
    ratio is clipped to 1 +- `clip`."""
    clipped = ratio.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratio * advantage, clipped * advantage).mean()


def clipped_value_loss(values: Tensor, before: Tensor, worth: Tensor, clip: float | None) -> Tensor:
    """Mean squared error of values [N] against `worth`. With `clip` it is, token by token, the
    larger of this error and that of the value clipped to within `clip` of its value `before` the
    iteration, so that a larger move gains nothing (as in PPO's first release)."""
    errors = (values - worth).square()
    if clip is None:
        return errors.mean()
    clipped = before + (values - before).clamp(-clip, clip)
    return torch.maximum(errors, (clipped - worth).square()).mean()


def generalised_advantages(
    rewards: Tensor, values: Tensor, discount: float | Tensor, decay: float, after: float = 0.0
) -> Tensor:
    """[T] of one episode (GAE, Schulman et al. 2016, equation 16). `discount` is that of what
    follows a step, one for all steps or [T]; `after` is the value of what follows the last step, 0
    where the episode ended."""
    discounts = torch.as_tensor(discount, dtype=rewards.dtype).expand(len(rewards))
    advantages = torch.zeros_like(rewards)
    running = torch.zeros((), dtype=rewards.dtype)
    next_value = torch.tensor(after, dtype=rewards.dtype)
    for step in range(len(rewards) - 1, -1, -1):
        surprise = rewards[step] + discounts[step] * next_value - values[step]
        running = surprise + discounts[step] * decay * running
        advantages[step] = running
        next_value = values[step]
    return advantages


def _mean_square(difference: Tensor) -> Tensor:
    return difference.square().mean()
