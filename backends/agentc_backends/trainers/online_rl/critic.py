"""The critic of utterances: its networks, its choice among candidate replies, its gradient step.

Two Q heads and two V heads read features of texts (`readers.py`); a slowly updated copy of all of
it, the target critic, makes the targets. The formulas are in `losses.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from agentc_backends.trainers.online_rl.losses import (
    CriticLoss,
    Twin,
    bellman_targets,
    critic_loss,
    expectile_critic_loss,
)
from agentc_backends.trainers.online_rl.readers import (
    CausalReader,
    Reader,
    Text,
    TextPrefix,
    whole_text,
)
from agentc_backends.trainers.online_rl.settings import CriticPhase


class Critic(nn.Module):  # type: ignore[misc]
    """Q of a state and a reply, which are encoded separately, and V of a state.

    Heads are those of the released code (linear, ReLU, linear, ReLU, linear) at any width. `start`
    is the initial value of all heads, the bias of their last layers: if it were far from the
    returns of the first policy, the first steps would be spent on the offset.
    """

    def __init__(self, reader: Reader, hidden: int | None = None, start: float = 0.0) -> None:
        super().__init__()
        self.reader = reader
        width = reader.width
        inner = hidden or width
        self.q1, self.q2 = value_head(2 * width, inner, start), value_head(2 * width, inner, start)
        self.v1, self.v2 = value_head(width, inner, start), value_head(width, inner, start)

    def q(self, states: Tensor, replies: Tensor) -> Twin:
        """Of features [B, H] each."""
        both = torch.cat([states, replies], dim=1)
        return Twin(self.q1(both)[:, 0], self.q2(both)[:, 0])

    def v(self, states: Tensor) -> Twin:
        """Of features [B, H]."""
        return Twin(self.v1(states)[:, 0], self.v2(states)[:, 0])

    def read(self, texts: Sequence[TextPrefix]) -> Tensor:
        """Features [B, H] of states or replies; equal ones are encoded once."""
        return cast(Tensor, self.reader(texts))


def value_head(width: int, inner: int, start: float) -> nn.Sequential:
    """Of features [..., width]: [..., 1]; near `start` before training."""
    last = nn.Linear(inner, 1)
    nn.init.constant_(last.bias, start)
    return nn.Sequential(
        nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), last
    )


def new_critic(
    policy: Any, hidden: int | None, start: float, reader: Reader | None = None
) -> Critic:
    """An untrained critic over `reader`, by default over a copy of the policy's present body."""
    if reader is None:
        width = int(policy.config.get_text_config().hidden_size)
        reader = CausalReader(copy.deepcopy(policy.base_model), width)
    return Critic(reader, hidden, start)


def target_copy(critic: Critic) -> Critic:
    """The target critic at the start: an equal copy without gradient."""
    copied = copy.deepcopy(critic)
    copied.requires_grad_(False)
    return copied


def polyak_update(target: nn.Module, online: nn.Module, rate: float) -> None:
    """target += rate * (online - target) for every parameter; buffers do not change."""
    targets, sources = list(target.parameters()), list(online.parameters())
    with torch.no_grad():
        torch._foreach_mul_(targets, 1 - rate)
        torch._foreach_add_(targets, sources, alpha=rate)


def index_of_best(worth: Tensor) -> Tensor:
    """[B, draws] -> [B], the index of each row's maximum; the first one of equal maxima."""
    highest = worth == worth.max(dim=1, keepdim=True).values
    return highest.to(torch.uint8).argmax(dim=1)


@dataclass(frozen=True, slots=True)
class BestOf:
    """Chooses one of `candidates` replies by the present critic: the one with the highest Q, the
    smaller of its two heads. The training job and the server of a published run both choose here,
    turn by turn, so that their choices are equal."""

    critic: Critic
    candidates: int

    def pick(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> int:
        """The index of the best reply to a prompt, all in tokens. The prompt and the distinct
        replies go through the critic in batches of their own, so that the last bits of its values
        depend on this turn only."""
        texts = [Text(tuple(reply)) for reply in replies]
        distinct = list(dict.fromkeys(texts))
        if len(distinct) == 1:
            return 0
        with torch.no_grad():
            state = self.critic.read([whole_text(Text(tuple(prompt)))])
            features = self.critic.read([whole_text(text) for text in distinct])
            q = self.critic.q(state.expand(len(distinct), -1), features)
        return texts.index(distinct[int(index_of_best(q.least()[None]))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterances:
    """A batch of B transitions. `following` is None where the episode ended. `drawn` are fresh
    replies of the policy in the same states, needed by the value target `policy` only: one or more
    for each state, those of a state adjacent. `rewards` and `to_go` are [B]."""

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
    phase: CriticPhase,
) -> tuple[CriticLoss, float]:
    """One step of the critic and one of its target. Returns the losses, without gradient, and the
    norm of the gradient before clipping; the released code clips the critic's gradient together
    with what the policy's last step has left."""
    loss = critic_losses(critic, target, batch, phase)
    optimiser.zero_grad(set_to_none=True)
    loss.total.backward()
    norm = nn.utils.clip_grad_norm_(critic.parameters(), phase.max_grad_norm or float("inf"))
    optimiser.step()
    polyak_update(target, critic, phase.target_rate)
    return loss.detach(), float(norm)


def critic_losses(
    critic: Critic, target: Critic, batch: Utterances, phase: CriticPhase
) -> CriticLoss:
    """The losses of a batch, with gradient to the critic only."""
    with torch.no_grad():
        q_target = bellman_targets(
            batch.rewards, _ended(batch), phase.discount, _next_values(target, batch)
        )
        v_target = _value_targets(critic, target, batch, phase)
    # A text that occurs several times among states and replies is encoded once.
    features = critic.read([*batch.states, *batch.replies])
    states, replies = features.split([len(batch.states), len(batch.replies)])
    q, v = critic.q(states, replies), critic.v(states)
    if phase.value_target == "expectile":
        return expectile_critic_loss(q, v, q_target, v_target, phase.expectile)
    return critic_loss(q, v, q_target, v_target)


def _ended(batch: Utterances) -> Tensor:
    ended = [state is None for state in batch.following]
    return torch.tensor(ended, device=batch.rewards.device)


def _next_values(target: Critic, batch: Utterances) -> Twin:
    """V of the states that follow; 0, which is not used, where none does."""
    rows = [number for number, state in enumerate(batch.following) if state is not None]
    first, second = torch.zeros_like(batch.rewards), torch.zeros_like(batch.rewards)
    if rows:
        states = [state for state in batch.following if state is not None]
        values = target.v(target.read(states))
        first[rows], second[rows] = values.first, values.second
    return Twin(first, second)


def _value_targets(critic: Critic, target: Critic, batch: Utterances, phase: CriticPhase) -> Twin:
    if phase.value_target == "return":
        return Twin(batch.to_go, batch.to_go)
    replies = batch.drawn if phase.value_target == "policy" else batch.replies
    draws, left = divmod(len(replies), len(batch.states))
    if not draws or left:
        raise ValueError("the value target `policy` needs replies of the policy for each state")
    if draws == 1:
        features = target.read([*batch.states, *replies])
        of_states, of_replies = features.split([len(batch.states), len(replies)])
        return target.q(of_states, of_replies)
    values = _candidate_values(target, batch.states, replies, draws)
    ranks = values if phase.rank_with == "target" else (
        _candidate_values(critic, batch.states, replies, draws)
    )  # fmt: skip
    best = index_of_best(ranks.least().reshape(-1, draws))
    return values[best + draws * torch.arange(len(best), device=best.device)]


def _candidate_values(
    critic: Critic, states: Sequence[TextPrefix], replies: Sequence[TextPrefix], draws: int
) -> Twin:
    """[B * draws]. Replies are read separately: next to states they would be padded to these."""
    features = critic.read(states).repeat_interleave(draws, dim=0)
    return critic.q(features, critic.read(replies))
