"""The critic of utterances: two Q heads and two V heads over one encoder, and the slow copy of it.

Neighbours: `reading.py`, the encoders; `losses.py`; `critic_step.py`, which trains it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

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


class Critic(nn.Module):  # type: ignore[misc]
    """Q of a state and a reply, which are encoded apart, and V of a state.

    Heads are those of the released code (linear, ReLU, linear, ReLU, linear) at any width. `start`
    is what all of them say at first, the bias of their last layers: far from the returns of the
    first policy, the critic's first steps would go into the offset alone.
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


def new_critic(
    policy: Any, hidden: int | None, start: float, reader: Reader | None = None
) -> Critic:
    """A critic that reads with that reader, else with a copy of the policy's body as it is now."""
    if reader is None:
        width = int(policy.config.get_text_config().hidden_size)
        reader = CausalReader(copy.deepcopy(policy.base_model), width)
    return Critic(reader, hidden, start)


def target_copy(critic: Critic) -> Critic:
    """The target critic at the start: equal, and without gradient."""
    copied = copy.deepcopy(critic)
    copied.requires_grad_(False)
    return copied


def polyak_update(target: nn.Module, online: nn.Module, rate: float) -> None:
    """target += rate * (online - target), every parameter (Polyak); buffers stay as they are."""
    mine, others = list(target.parameters()), list(online.parameters())
    with torch.no_grad():
        torch._foreach_mul_(mine, 1 - rate)
        torch._foreach_add_(mine, others, alpha=rate)


def value_head(width: int, inner: int, start: float) -> nn.Sequential:
    """Of features [..., width]: [..., 1]; near `start` before it learns."""
    last = nn.Linear(inner, 1)
    nn.init.constant_(last.bias, start)
    return nn.Sequential(
        nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), last
    )


RankWith: TypeAlias = Literal["target", "online"]
"""Who ranks candidates: the slow copy of the critic, as released, or the critic itself."""


def index_of_best(worth: Tensor) -> Tensor:
    """[B, draws] -> [B], the number of each row's highest; of equal ones the first."""
    highest = worth == worth.max(dim=1, keepdim=True).values
    return highest.to(torch.uint8).argmax(dim=1)


@dataclass(frozen=True, slots=True)
class BestOf:
    """Chooses among so many `candidates` by a critic as it is at the moment."""

    critic: Critic
    candidates: int

    def pick(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> int:
        """The number of the reply that is said behind a prompt, all in tokens. The critic reads the
        prompt, and each distinct reply, in passes that nothing else takes part in: the last bits of
        what it says depend on this turn alone."""
        texts = [Text(tuple(reply)) for reply in replies]
        distinct = list(dict.fromkeys(texts))
        if len(distinct) == 1:
            return 0
        with torch.no_grad():
            state = self.critic.read([whole_text(Text(tuple(prompt)))])
            said = self.critic.read([whole_text(text) for text in distinct])
            q = self.critic.q(state.expand(len(distinct), -1), said)
        return texts.index(distinct[int(index_of_best(q.least()[None]))])


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
    polyak_update(target, critic, settings.target_rate)
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
    best = index_of_best(ranks.least().reshape(-1, draws))
    return values[best + draws * torch.arange(len(best), device=best.device)]


def _of_candidates(
    critic: Critic, states: Sequence[TextPrefix], replies: Sequence[TextPrefix], draws: int
) -> Twin:
    """[B * draws]. Replies are read apart: beside states they would be padded to these."""
    seen = critic.read(states).repeat_interleave(draws, dim=0)
    return critic.q(seen, critic.read(replies))
