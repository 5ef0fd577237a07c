"""The critic of utterances: two Q heads and two V heads over one encoder, and the slow copy of it.

Neighbours: `reading.py`, the encoders; `losses.py`; `critic_step.py`, which trains it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from agentc_backends.trainers.online_rl.losses import Twin
from agentc_backends.trainers.online_rl.reading import CausalReader, Reader, TextPrefix


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


def critic_over(
    policy: Any, hidden: int | None, start: float, reader: Reader | None = None
) -> Critic:
    """A critic that reads with that reader, else with a copy of the policy's body as it is now."""
    if reader is None:
        width = int(policy.config.get_text_config().hidden_size)
        reader = CausalReader(copy.deepcopy(policy.base_model), width)
    return Critic(reader, hidden, start)


def slow_copy(critic: Critic) -> Critic:
    """The target critic at the start: equal, and without gradient."""
    copied = copy.deepcopy(critic)
    copied.requires_grad_(False)
    return copied


def follow(target: nn.Module, online: nn.Module, rate: float) -> None:
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
