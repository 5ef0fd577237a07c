"""What is still to come at each token of a reply, as PPO's value network says, and the advantages
that follow from it.

Neighbours: `ppo.py` trains it, `actor_step.py` finds the places of tokens, `losses.py` has GAE.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from agentc_backends.trainers.online_rl.critic import value_head
from agentc_backends.trainers.online_rl.losses import generalised_advantages
from agentc_backends.trainers.online_rl.replay import Played
from agentc_backends.trainers.online_rl.shared_texts import Row, reply_states


class TokenValues(nn.Module):  # type: ignore[misc]
    """A value of all that stands before a token: a head over a causal `body` of its own, of so many
    features. `start` is what it says at first."""

    def __init__(self, body: nn.Module, width: int, hidden: int | None, start: float) -> None:
        super().__init__()
        self.body = body
        self.head = value_head(width, hidden or width, start)

    def forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Values [B, T] before each token of the replies, and the mask that is 1 on these."""
        states, _, mask = reply_states(self.body, rows)
        return self.head(states)[..., 0], mask


def token_advantages(
    played: Played, values: Sequence[Tensor], discount: float, decay: float, after: float = 0.0
) -> list[Tensor]:
    """Of an episode, for each turn [tokens of its reply]; `values` are of that shape.

    A turn's reward comes with the last token of its reply. What follows counts less by `discount`
    from one turn to the next and by nothing within a reply, so that an episode is worth the same
    however many tokens say it; `decay` (lambda) acts from token to token. `after` is the value of
    what follows an episode that a limit cut.
    """
    lengths = [len(each) for each in values]
    last = torch.tensor(lengths).cumsum(0) - 1
    known = torch.cat([*values])
    rewards, discounts = torch.zeros_like(known), torch.ones_like(known)
    rewards[last] = torch.tensor([turn.reward for turn in played.turns], dtype=known.dtype)
    discounts[last] = discount
    found = generalised_advantages(rewards, known, discounts, decay, after)
    return [*found.split(lengths)]
