"""PPO on tokens: each iteration learns from its own episodes alone, then forgets them.

Schulman et al. (2017), algorithm 1, with a value of each token (ArCHer's rival in section 5 of Zhou
et al., ICML 2024). The values are a network of their own, so that neither loss needs a share of the
other's and warm-up can train values alone. Neighbours: `token_values.py`, `losses.py`,
`actor_step.py`.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from agentc_backends.trainers.online_rl.archer import CRITIC
from agentc_backends.trainers.online_rl.critic import value_head
from agentc_backends.trainers.online_rl.learning import (
    ACTOR,
    Learning,
    Numbers,
    Row,
    gradient_step,
    per_row,
    reply_log_probs,
    reply_log_probs_and_entropy,
    reply_states,
)
from agentc_backends.trainers.online_rl.losses import (
    clipped_loss,
    clipped_value_loss,
    generalised_advantages,
)
from agentc_backends.trainers.online_rl.replay import Episode, Purpose, ReplayBuffer, key_of


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
    played: Episode, values: Sequence[Tensor], discount: float, decay: float, after: float = 0.0
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


_TokenLoss: TypeAlias = Callable[[Sequence[int], Sequence[Row]], Tensor]
"""Of these numbers of an iteration's rows, and the rows: a mean over their tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePhase:
    """How the values learn in an iteration; `start` is what they say at first."""

    lr: float
    batch: int
    hidden: int | None
    start: float
    max_grad_norm: float
    discount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedPhase:
    """How the policy learns in an iteration. `kl_penalty` is taken off a token's advantage for each
    nat by which the policy likes it, and the rest of its reply, better than its start did."""

    lr: float
    batch: int
    max_grad_norm: float
    kl_penalty: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PpoRules:
    """The same for both: `epochs` times over the episodes, in steps of whole episodes or of
    utterances (`by`)."""

    clip: float
    value_clip: float | None
    gae_lambda: float
    epochs: int
    entropy_coef: float
    normalise: bool
    by: Literal["utterances", "episodes"]


@dataclass(frozen=True, slots=True)
class _Estimates:
    """The utterances of an iteration, one entry in each sequence: [tokens of the reply] of what the
    values said before this iteration, of advantages, and of what the values are held to."""

    rows: list[Row]
    groups: list[list[int]]
    values: list[Tensor]
    better: list[Tensor]
    worth: list[Tensor]


class PpoLearner:
    """Two phases. `actor` comes first, for advantages are of values that have not seen the
    episodes; then these values learn them (`critic`)."""

    phases: Sequence[str] = (ACTOR, CRITIC)

    def __init__(
        self, learning: Learning, values: ValuePhase, actor: ClippedPhase, rules: PpoRules
    ) -> None:
        """The body of the values is a copy of the policy's as it starts."""
        self._with, self._values, self._actor, self._rules = learning, values, actor, rules
        policy = learning.policy
        body = copy.deepcopy(policy.base_model)
        torch.manual_seed(learning.seed)  # the weights of the head
        width = int(policy.config.get_text_config().hidden_size)
        self.critic = TokenValues(body, width, values.hidden, values.start)
        self._reference = None
        if actor.kl_penalty:
            self._reference = copy.deepcopy(policy).requires_grad_(False)
        self.optimisers: Mapping[str, Optimizer] = {
            CRITIC: Adam(self.critic.parameters(), lr=values.lr),
            ACTOR: Adam(policy.parameters(), lr=actor.lr),
        }

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """What changes; the reference is the policy that the run starts from."""
        return {"policy": self._with.policy, "critic": self.critic}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase on the episodes that were added last. Raises ValueError
        where these have no turns."""
        judged = self._judge([one for one in buffer.fresh if one.turns])
        if phase == CRITIC:
            return self._learn_values(iteration, judged)
        return self._improve(iteration, judged)

    def _judge(self, episodes: Sequence[Episode]) -> _Estimates:
        if not episodes:
            raise ValueError("nothing was played in this iteration")
        rows: list[Row] = []
        groups: list[list[int]] = []
        better: list[Tensor] = []
        for one in episodes:
            groups.append([*range(len(rows), len(rows) + len(one.turns))])
            rows += [(turn.state.ids, turn.reply.ids) for turn in one.turns]
        size = self._with.micro_batch
        values = per_row(self.critic, rows, size)
        for one, group in zip(episodes, groups, strict=True):
            after = 0.0
            if one.state_after is not None:
                # The value before any token that might have followed.
                ((value,),) = per_row(self.critic, [(one.state_after.ids, (0,))], size)
                after = float(value)
            better += token_advantages(
                one,
                [values[number] for number in group],
                self._values.discount,
                self._rules.gae_lambda,
                after,
            )
        if self._rules.by == "utterances":
            groups = [[number] for number in range(len(rows))]
        worth = [value + more for value, more in zip(values, better, strict=True)]
        return _Estimates(rows, groups, values, better, worth)

    def _improve(self, iteration: int, judged: _Estimates) -> Numbers:
        phase, rules, policy = self._actor, self._rules, self._with.policy
        size = self._with.micro_batch
        before = per_row(self._log_probs, judged.rows, size)
        better = torch.cat(judged.better)
        told: Numbers = {
            "advantage.mean": float(better.mean()),
            "advantage.sd": float(better.std(correction=0)),
        }
        if self._reference is not None:
            then = per_row(partial(reply_log_probs, self._reference), judged.rows, size)
            left = [now - start for now, start in zip(before, then, strict=True)]
            told["kl"] = statistics.fmean(float(each.sum()) for each in left)
            better = better - phase.kl_penalty * torch.cat([_suffix_sums(each) for each in left])
        if rules.normalise:
            better = (better - better.mean()) / better.std(correction=0).clamp(min=1e-8)
        weights = better.split([len(each) for each in before])

        def loss(numbers: Sequence[int], some: Sequence[Row]) -> Tensor:
            entropy = None
            if rules.entropy_coef:
                log_probs, mask, entropy = reply_log_probs_and_entropy(policy, some)
            else:
                log_probs, mask = reply_log_probs(policy, some)
            on = mask.bool()
            ratio = (log_probs[on] - _joined(before, numbers)).exp()
            found = clipped_loss(ratio, _joined(weights, numbers), rules.clip)
            return found if entropy is None else found - rules.entropy_coef * entropy[on].mean()

        told |= self._epochs(
            ACTOR, policy, judged, loss, "actor", iteration, phase.batch, phase.max_grad_norm
        )
        moved = torch.cat(per_row(self._log_probs, judged.rows, size)) - torch.cat(before)
        return {
            **told,
            "entropy": -float(torch.cat(before).mean()),  # of the policy that played
            "moved": -float(moved.mean()),
            "clipped": float(((moved.exp() - 1).abs() > rules.clip).float().mean()),
        }

    def _learn_values(self, iteration: int, judged: _Estimates) -> Numbers:
        phase, rules = self._values, self._rules
        worth, said = torch.cat(judged.worth), torch.cat(judged.values)
        unexplained = (worth - said).var(correction=0) / worth.var(correction=0).clamp(min=1e-8)

        def loss(numbers: Sequence[int], some: Sequence[Row]) -> Tensor:
            values, mask = self.critic(some)
            return clipped_value_loss(
                values[mask.bool()],
                _joined(judged.values, numbers),
                _joined(judged.worth, numbers),
                rules.value_clip,
            )

        told = self._epochs(
            CRITIC, self.critic, judged, loss, "value", iteration, phase.batch, phase.max_grad_norm
        )
        return {"explained": 1 - float(unexplained), **told}

    def _epochs(
        self,
        name: str,
        model: nn.Module,
        judged: _Estimates,
        loss: _TokenLoss,
        purpose: Purpose,
        iteration: int,
        batch: int,
        clip: float,
    ) -> Numbers:
        """All gradient steps of a phase; means over them."""
        losses, norms = [], []
        for epoch in range(self._rules.epochs):
            key = key_of(self._with.seed, purpose, iteration, epoch)
            for chosen in minibatches(judged.groups, batch, key):
                tokens = sum(len(judged.values[number]) for number in chosen)

                def share(
                    some: Sequence[Row],
                    part: Sequence[int],
                    of: Sequence[int] = chosen,
                    tokens: int = tokens,
                ) -> Tensor:
                    numbers = [of[place] for place in part]
                    here = sum(len(judged.values[number]) for number in numbers)
                    return loss(numbers, some) * (here / tokens)

                found, norm = gradient_step(
                    model,
                    self.optimisers[name],
                    [judged.rows[number] for number in chosen],
                    share,
                    micro_batch=self._with.micro_batch,
                    clip=clip,
                )
                losses.append(found)
                norms.append(norm)
        return {"loss": statistics.fmean(losses), "grad_norm": statistics.fmean(norms)}

    def _log_probs(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        return reply_log_probs(self._with.policy, rows)


def minibatches(groups: Sequence[Sequence[int]], size: int, key: int) -> list[list[int]]:
    """All numbers in an order that the key alone decides, those of a group together, in parts of
    about `size` or more: a small rest would be a step of Adam as large as the others."""
    parts = max(1, sum(map(len, groups)) // size)
    order = numpy.random.Generator(numpy.random.Philox(key=key)).permutation(len(groups))
    cut = numpy.array_split(order, min(parts, len(groups)))
    return [[number for place in part for number in groups[place]] for part in cut]


def _joined(of: Sequence[Tensor], numbers: Sequence[int]) -> Tensor:
    """In the order in which a mask takes the tokens of these rows out of [B, T]."""
    return torch.cat([of[number] for number in numbers])


def _suffix_sums(each: Tensor) -> Tensor:
    """Of a sequence: the sum of what stands at each place and behind it."""
    return each.flip(0).cumsum(0).flip(0)
