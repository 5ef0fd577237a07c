"""PPO on tokens: each iteration learns from its own episodes only.

Schulman et al. (2017), algorithm 1, with a value of each token (a baseline in section 5 of the
ArCHer paper). The value network is separate from the policy, so the two losses need no relative
weight, and warm-up can train the values first.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from agentc.kinds.reinforcement import ActorSteps
from agentc.program.settings import settings_from
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
from agentc_backends.trainers.online_rl.settings import CriticPhase, PpoRules


class TokenValues(nn.Module):  # type: ignore[misc]
    """The value of what precedes a token: a head over a causal `body` of `width` features. `start`
    is its initial value."""

    def __init__(self, body: nn.Module, width: int, hidden: int | None, start: float) -> None:
        super().__init__()
        self.body = body
        self.head = value_head(width, hidden or width, start)

    def forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Values [B, T] before each token of the replies, and the mask of these tokens."""
        states, _, mask = reply_states(self.body, rows)
        return self.head(states)[..., 0], mask


def token_advantages(
    episode: Episode, values: Sequence[Tensor], discount: float, decay: float, after: float = 0.0
) -> list[Tensor]:
    """GAE of an episode: for each turn [tokens of its reply], the shape of `values`.

    A turn's reward comes with the last token of its reply. `discount` applies from one turn to the
    next and not within a reply, so that an episode has the same value however many tokens it takes;
    `decay` (lambda) applies from token to token. `after` is the value of what follows an episode
    that a limit cut.
    """
    lengths = [len(turn) for turn in values]
    last = torch.tensor(lengths).cumsum(0) - 1
    token_values = torch.cat([*values])
    rewards, discounts = torch.zeros_like(token_values), torch.ones_like(token_values)
    rewards[last] = torch.tensor([turn.reward for turn in episode.turns], dtype=token_values.dtype)
    discounts[last] = discount
    advantages = generalised_advantages(rewards, token_values, discounts, decay, after)
    return [*advantages.split(lengths)]


_TokenLoss: TypeAlias = Callable[[Sequence[int], Sequence[Row]], Tensor]
"""(numbers, rows) of some rows of an iteration -> the mean over their tokens."""


@dataclass(frozen=True, slots=True)
class _Estimates:
    """The utterances of an iteration, and for each the values before this iteration, the advantages
    and the targets of the values, all [tokens of the reply]. `groups` are the numbers of the
    utterances that stay together in a minibatch."""

    rows: list[Row]
    groups: list[list[int]]
    values: list[Tensor]
    advantages: list[Tensor]
    targets: list[Tensor]


class PpoLearner:
    """Two phases: first `actor`, since the advantages need values that were not trained on these
    episodes, then `critic`."""

    phases: Sequence[str] = (ACTOR, CRITIC)

    def __init__(
        self, learning: Learning, values: CriticPhase, actor: ActorSteps, rules: PpoRules
    ) -> None:
        """The body of the values starts as a copy of the policy's. `actor.kl_penalty` times the
        log-ratio of the policy to its start, summed from a token to the end of its reply, is
        subtracted from the token's advantage."""
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

    @classmethod
    def of(cls, learning: Learning, settings: Mapping[str, Any]) -> PpoLearner:
        """The learner of a plan's settings."""
        return cls(
            learning,
            settings_from(CriticPhase, settings["critic"]),
            settings_from(ActorSteps, settings["actor"]),
            settings_from(PpoRules, settings["rules"]),
        )

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """The networks that are trained; the reference is the policy that the run starts from."""
        return {"policy": self._with.policy, "critic": self.critic}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase on the episodes that were added last. Raises ValueError
        where these have no turns."""
        estimates = self._estimate([episode for episode in buffer.fresh if episode.turns])
        if phase == CRITIC:
            return self._learn_values(iteration, estimates)
        return self._improve(iteration, estimates)

    def _estimate(self, episodes: Sequence[Episode]) -> _Estimates:
        if not episodes:
            raise ValueError("nothing was played in this iteration")
        rows: list[Row] = []
        groups: list[list[int]] = []
        for episode in episodes:
            groups.append([*range(len(rows), len(rows) + len(episode.turns))])
            rows += [(turn.state.ids, turn.reply.ids) for turn in episode.turns]
        size = self._with.micro_batch
        values = per_row(self.critic, rows, size)
        advantages: list[Tensor] = []
        for episode, group in zip(episodes, groups, strict=True):
            after = 0.0
            if episode.state_after is not None:
                # The value before any token that might have followed.
                ((value,),) = per_row(self.critic, [(episode.state_after.ids, (0,))], size)
                after = float(value)
            advantages += token_advantages(
                episode,
                [values[number] for number in group],
                self._values.discount,
                self._rules.gae_lambda,
                after,
            )
        if self._rules.by == "utterances":
            groups = [[number] for number in range(len(rows))]
        targets = [value + more for value, more in zip(values, advantages, strict=True)]
        return _Estimates(rows, groups, values, advantages, targets)

    def _improve(self, iteration: int, estimates: _Estimates) -> Numbers:
        phase, rules, policy = self._actor, self._rules, self._with.policy
        size = self._with.micro_batch
        before = per_row(self._log_probs, estimates.rows, size)
        better = torch.cat(estimates.advantages)
        numbers: Numbers = {
            "advantage.mean": float(better.mean()),
            "advantage.sd": float(better.std(correction=0)),
        }
        if self._reference is not None:
            start = per_row(partial(reply_log_probs, self._reference), estimates.rows, size)
            ratios = [now - then for now, then in zip(before, start, strict=True)]
            numbers["kl"] = statistics.fmean(float(ratio.sum()) for ratio in ratios)
            better = better - phase.kl_penalty * torch.cat([*map(_suffix_sums, ratios)])
        if rules.normalise:
            better = (better - better.mean()) / better.std(correction=0).clamp(min=1e-8)
        weights = better.split([len(row) for row in before])

        def loss(places: Sequence[int], some: Sequence[Row]) -> Tensor:
            entropy = None
            if rules.entropy_coef:
                log_probs, mask, entropy = reply_log_probs_and_entropy(policy, some)
            else:
                log_probs, mask = reply_log_probs(policy, some)
            on = mask.bool()
            ratio = (log_probs[on] - _joined(before, places)).exp()
            mean = clipped_loss(ratio, _joined(weights, places), rules.clip)
            return mean if entropy is None else mean - rules.entropy_coef * entropy[on].mean()

        numbers |= self._epochs(
            ACTOR, policy, estimates, loss, "actor", iteration, phase.batch, phase.max_grad_norm
        )
        moved = torch.cat(per_row(self._log_probs, estimates.rows, size)) - torch.cat(before)
        return {
            **numbers,
            "entropy": -float(torch.cat(before).mean()),  # of the policy that played
            "moved": -float(moved.mean()),
            "clipped": float(((moved.exp() - 1).abs() > rules.clip).float().mean()),
        }

    def _learn_values(self, iteration: int, estimates: _Estimates) -> Numbers:
        phase, rules = self._values, self._rules
        targets, values = torch.cat(estimates.targets), torch.cat(estimates.values)
        unexplained = (targets - values).var(correction=0) / targets.var(correction=0).clamp(
            min=1e-8
        )

        def loss(places: Sequence[int], some: Sequence[Row]) -> Tensor:
            now, mask = self.critic(some)
            return clipped_value_loss(
                now[mask.bool()],
                _joined(estimates.values, places),
                _joined(estimates.targets, places),
                rules.value_clip,
            )

        numbers = self._epochs(
            CRITIC, self.critic, estimates, loss, "value", iteration, phase.batch,
            phase.max_grad_norm,
        )  # fmt: skip
        return {"explained": 1 - float(unexplained), **numbers}

    def _epochs(
        self,
        name: str,
        model: nn.Module,
        estimates: _Estimates,
        loss: _TokenLoss,
        purpose: Purpose,
        iteration: int,
        batch: int,
        clip: float,
    ) -> Numbers:
        """All gradient steps of a phase; the means of their metrics."""
        losses, norms = [], []
        for epoch in range(self._rules.epochs):
            key = key_of(self._with.seed, purpose, iteration, epoch)
            for chosen in minibatches(estimates.groups, batch, key):
                tokens = sum(len(estimates.values[number]) for number in chosen)

                def share(
                    some: Sequence[Row],
                    part: Sequence[int],
                    of: Sequence[int] = chosen,
                    tokens: int = tokens,
                ) -> Tensor:
                    numbers = [of[place] for place in part]
                    here = sum(len(estimates.values[number]) for number in numbers)
                    return loss(numbers, some) * (here / tokens)

                mean, norm = gradient_step(
                    model,
                    self.optimisers[name],
                    [estimates.rows[number] for number in chosen],
                    share,
                    micro_batch=self._with.micro_batch,
                    clip=clip,
                )
                losses.append(mean)
                norms.append(norm)
        return {"loss": statistics.fmean(losses), "grad_norm": statistics.fmean(norms)}

    def _log_probs(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        return reply_log_probs(self._with.policy, rows)


def minibatches(groups: Sequence[Sequence[int]], size: int, key: int) -> list[list[int]]:
    """All numbers in an order that depends on the key only, those of a group adjacent, in parts of
    about `size` or more: a small last part would be as large a step of Adam as the others."""
    parts = max(1, sum(map(len, groups)) // size)
    order = numpy.random.Generator(numpy.random.Philox(key=key)).permutation(len(groups))
    cut = numpy.array_split(order, min(parts, len(groups)))
    return [[number for place in part for number in groups[place]] for part in cut]


def _joined(of: Sequence[Tensor], numbers: Sequence[int]) -> Tensor:
    """Concatenated in the order in which a mask selects the tokens of these rows from [B, T]."""
    return torch.cat([of[number] for number in numbers])


def _suffix_sums(row: Tensor) -> Tensor:
    """The sums of a sequence from each place to its end."""
    return row.flip(0).cumsum(0).flip(0)
