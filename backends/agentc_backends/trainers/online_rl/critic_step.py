"""One gradient step of the critic: targets from the slow copy, losses, clipping, and the copy's
own small step.

Neighbours: `losses.py` has the formulas, `critic.py` the networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from agentc_backends.trainers.online_rl.best_of import RankWith, best_of
from agentc_backends.trainers.online_rl.critic import Critic, follow
from agentc_backends.trainers.online_rl.losses import (
    CriticLoss,
    Twin,
    bellman_targets,
    critic_loss,
    expectile_critic_loss,
)
from agentc_backends.trainers.online_rl.reading import TextPrefix

ValueTarget: TypeAlias = Literal["policy", "data", "return", "expectile"]
"""What V is held to: the target critic's Q of a reply that the policy gives now (the paper's), of
the stored one (SARSA), the episode's own return to go, or an expectile of the stored ones (IQL)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticSettings:
    """`clip` is the largest norm of the critic's own gradient, 0 for none: the released code clips
    it together with what the policy's last step has left. Of several drawn replies for a state the
    best by the critic that `rank_with` names counts, as that is now."""

    discount: float
    target_rate: float
    value_target: ValueTarget = "policy"
    rank_with: RankWith = "target"
    expectile: float = 0.9
    clip: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterances:
    """A batch of B tuples. `following` has None where the episode ended; `drawn` are replies of the
    policy of now in the same states, which only the value target `policy` needs: one or more for
    each, those of a state beside each other. `rewards` and `to_go` are [B]."""

    states: Sequence[TextPrefix]
    replies: Sequence[TextPrefix]
    rewards: Tensor
    following: Sequence[TextPrefix | None]
    to_go: Tensor
    drawn: Sequence[TextPrefix] = ()


def critic_step(
    critic: Critic,
    target: Critic,
    optimiser: Optimizer,
    batch: Utterances,
    settings: CriticSettings,
) -> tuple[CriticLoss, float]:
    """The losses, without gradient, and the norm of the gradient before it was clipped."""
    loss = critic_losses(critic, target, batch, settings)
    optimiser.zero_grad(set_to_none=True)
    loss.total.backward()
    norm = nn.utils.clip_grad_norm_(critic.parameters(), settings.clip or float("inf"))
    optimiser.step()
    follow(target, critic, settings.target_rate)
    told = CriticLoss(loss.q1.detach(), loss.q2.detach(), loss.v1.detach(), loss.v2.detach())
    return told, float(norm)


def critic_losses(
    critic: Critic, target: Critic, batch: Utterances, settings: CriticSettings
) -> CriticLoss:
    """Of a batch, with gradient to the critic alone."""
    with torch.no_grad():
        q_target = bellman_targets(
            batch.rewards, _ended(batch), settings.discount, _next_values(target, batch)
        )
        v_target = _value_targets(critic, target, batch, settings)
    # Whatever stands several times among states and replies is encoded once.
    features = critic.read([*batch.states, *batch.replies])
    states, replies = features.split([len(batch.states), len(batch.replies)])
    q, v = critic.q(states, replies), critic.v(states)
    if settings.value_target == "expectile":
        return expectile_critic_loss(q, v, q_target, v_target, settings.expectile)
    return critic_loss(q, v, q_target, v_target)


def _ended(batch: Utterances) -> Tensor:
    ended = [state is None for state in batch.following]
    return torch.tensor(ended, device=batch.rewards.device)


def _next_values(target: Critic, batch: Utterances) -> Twin:
    """V of the states that follow; 0 where none does, which nothing looks at."""
    there = [number for number, state in enumerate(batch.following) if state is not None]
    first, second = torch.zeros_like(batch.rewards), torch.zeros_like(batch.rewards)
    if there:
        states = [state for state in batch.following if state is not None]
        values = target.v(target.read(states))
        first[there], second[there] = values.first, values.second
    return Twin(first, second)


def _value_targets(
    critic: Critic, target: Critic, batch: Utterances, settings: CriticSettings
) -> Twin:
    if settings.value_target == "return":
        return Twin(batch.to_go, batch.to_go)
    replies = batch.drawn if settings.value_target == "policy" else batch.replies
    draws, left = divmod(len(replies), len(batch.states))
    if not draws or left:
        raise ValueError("the value target `policy` needs replies of the policy for each state")
    if draws == 1:
        features = target.read([*batch.states, *replies])
        states, said = features.split([len(batch.states), len(replies)])
        return target.q(states, said)
    values = _of_candidates(target, batch.states, replies, draws)
    ranks = values if settings.rank_with == "target" else (
        _of_candidates(critic, batch.states, replies, draws)
    )  # fmt: skip
    best = best_of(ranks.least().reshape(-1, draws))
    return values[best + draws * torch.arange(len(best), device=best.device)]


def _of_candidates(
    critic: Critic, states: Sequence[TextPrefix], replies: Sequence[TextPrefix], draws: int
) -> Twin:
    """[B * draws]. Replies are read apart: beside states they would be padded to these."""
    seen = critic.read(states).repeat_interleave(draws, dim=0)
    return critic.q(seen, critic.read(replies))
