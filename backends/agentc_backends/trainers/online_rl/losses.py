"""Losses of the hierarchical critic and of policies, as functions of tensors and of nothing else.

One row is one utterance, an action of the upper level. Zhou et al., ArCHer (ICML 2024), sections 3
and 4; the released code's names are in docs/design/archer.md. Neighbours: `critic.py` makes the
values, `critic_step.py` the targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Twin:
    """The values [B] of two heads that are trained alike from different weights."""

    first: Tensor
    second: Tensor

    def least(self) -> Tensor:
        """[B], the smaller of the two: what both agree is to be had."""
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
        """Their sum, which is what is descended."""
        return self.q1 + self.q2 + self.v1 + self.v2


def bellman_targets(reward: Tensor, done: Tensor, discount: float, next_v: Twin) -> Twin:
    """r + discount * V(s') of the target critic, nothing of it where the episode ended. Each head
    has the target of its own twin, not the smaller one (as released)."""
    goes_on = discount * (~done).to(reward.dtype)
    return Twin(reward + goes_on * next_v.first, reward + goes_on * next_v.second).detach()


def critic_loss(q: Twin, v: Twin, q_target: Twin, v_target: Twin) -> CriticLoss:
    """Mean squares of Q against its Bellman target and of V against what an action is worth."""
    return CriticLoss(
        _mean_square(q.first - q_target.first),
        _mean_square(q.second - q_target.second),
        _mean_square(v.first - v_target.first),
        _mean_square(v.second - v_target.second),
    )


def expectile_critic_loss(
    q: Twin, v: Twin, q_target: Twin, data_q: Twin, expectile: float
) -> CriticLoss:
    """The same with V as an expectile of the target critic's Q over the data's own actions (IQL):
    near the best action that the data holds, without asking for others."""
    return CriticLoss(
        _mean_square(q.first - q_target.first),
        _mean_square(q.second - q_target.second),
        expectile_loss(data_q.first - v.first, expectile),
        expectile_loss(data_q.second - v.second, expectile),
    )


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """Mean of squares, those of a positive difference weighted by `expectile`, of a negative one
    by the rest of 1; at 0.5 half a mean square."""
    weight = torch.where(difference > 0, expectile, 1 - expectile)
    return (weight * difference.square()).mean()


def advantage(q: Twin, v: Twin) -> Tensor:
    """[B]: min(Q1, Q2) - min(V1, V2), without gradient; neither clipped nor divided."""
    return (q.least() - v.least()).detach()


def policy_gradient_loss(log_probs: Tensor, mask: Tensor, advantage: Tensor) -> Tensor:
    """-mean over rows of advantage * log p(utterance). `log_probs` and `mask` are [B, T], of the
    utterance's tokens; the mask is 1 where a token is trained."""
    return -((log_probs * mask).sum(dim=1) * advantage).mean()


@dataclass(frozen=True, slots=True)
class BaselineLoss:
    """With a value for each token: the policy's part and the values', scalars."""

    policy: Tensor
    value: Tensor


def baseline_loss(
    log_probs: Tensor, mask: Tensor, advantage: Tensor, values: Tensor
) -> BaselineLoss:
    """Each token is weighted by what the utterance is better than was expected before that token;
    `values` [B, T] learn that expectation. Their mean is over all entries, masked ones too (as
    released), so that it depends on how rows are padded."""
    better = advantage.unsqueeze(1) - values
    policy = -(better.detach() * log_probs * mask).sum(dim=1).mean()
    return BaselineLoss(policy, (better * mask).square().mean())


def advantage_weights(advantage: Tensor, temperature: float, most: float | None) -> Tensor:
    """exp(advantage / temperature) [B], at most `most`: how much of a row is imitated (AWR)."""
    weights = (advantage / temperature).exp()
    return weights if most is None else weights.clamp(max=most)


def imitation_loss(log_probs: Tensor, mask: Tensor, weights: Tensor | None = None) -> Tensor:
    """-mean over rows of log p(utterance), each times its weight where there are some."""
    totals = (log_probs * mask).sum(dim=1)
    return -(totals if weights is None else totals * weights).mean()


def clipped_loss(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """PPO's, of one entry for each token: -mean of the smaller of ratio * A and the same with the
    ratio held within 1 +- clip."""
    held = ratio.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratio * advantage, held * advantage).mean()


def clipped_value_loss(values: Tensor, before: Tensor, worth: Tensor, clip: float | None) -> Tensor:
    """Mean square of what values [N] miss `worth` by. With `clip`, the larger one of it and of that
    of values held within `clip` of those `before` the iteration, so that none gains by a longer
    way (as PPO's first release had it)."""
    missed = (values - worth).square()
    if clip is None:
        return missed.mean()
    held = before + (values - before).clamp(-clip, clip)
    return torch.maximum(missed, (held - worth).square()).mean()


def generalised_advantages(
    rewards: Tensor, values: Tensor, discount: float | Tensor, decay: float, after: float = 0.0
) -> Tensor:
    """[T] of one episode (GAE, Schulman et al. 2016, equation 16). `discount`, one for all steps or
    [T], is how much counts what follows a step; `after` is the value of what follows the last one,
    0 where the episode ended."""
    each = torch.as_tensor(discount, dtype=rewards.dtype).expand(len(rewards))
    found = torch.zeros_like(rewards)
    carried = torch.zeros((), dtype=rewards.dtype)
    following = torch.tensor(after, dtype=rewards.dtype)
    for step in range(len(rewards) - 1, -1, -1):
        surprise = rewards[step] + each[step] * following - values[step]
        carried = surprise + each[step] * decay * carried
        found[step] = carried
        following = values[step]
    return found


def _mean_square(difference: Tensor) -> Tensor:
    return difference.square().mean()


def to_go(rewards: Sequence[float], discount: float) -> list[float]:
    """The discounted return from each step on, counted from the end, so that no power of the
    discount is formed."""
    found: list[float] = []
    later = 0.0
    for reward in reversed(rewards):
        later = reward + discount * later
        found.append(later)
    return found[::-1]


def group_advantages(returns: Sequence[float], divide: bool) -> list[float]:
    """Of several episodes of one task: what each is better than their mean, in standard deviations
    of the sample where `divide` says so (GRPO); 0 for all where they are alike."""
    mean = sum(returns) / len(returns)
    better = [one - mean for one in returns]
    if not divide:
        return better
    variance = sum(one * one for one in better) / max(len(returns) - 1, 1)
    return [one / variance**0.5 if variance > 0 else 0.0 for one in better]
