"""ArCHer: the critic learns from everything that was played, then the policy from the critic.

Zhou et al. (ICML 2024), algorithm 1. Every reply that a critic phase needs is drawn before it, at
once: the policy does not change in it (docs/design/archer.md). Neighbours: `critic_step.py`,
`actor_step.py`, `losses.py`.
"""

from __future__ import annotations

import copy
import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from agentc_backends.trainers.online_rl.critic import (
    BestOf,
    CriticSettings,
    RankWith,
    Utterances,
    ValueTarget,
    critic_step,
    new_critic,
    target_copy,
)
from agentc_backends.trainers.online_rl.learning import (
    ACTOR,
    Learning,
    Numbers,
    Row,
    actor_step,
    per_row,
    reply_log_probs,
)
from agentc_backends.trainers.online_rl.losses import (
    advantage,
    advantage_weights,
    imitation_loss,
    policy_gradient_loss,
)
from agentc_backends.trainers.online_rl.readers import Text, TextPrefix, whole_text
from agentc_backends.trainers.online_rl.replay import (
    Purpose,
    ReplayBuffer,
    Utterance,
    key_of,
    utterances,
)
from agentc_backends.trainers.online_rl.sampling import DrawRequest

CRITIC = "critic"


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticPhase:
    """How the critic learns in an iteration; `start` is what its heads say at first. Of a policy
    that says the best of several `candidates`, as `rank_with` ranks them, V is held to that."""

    lr: float
    updates: int
    batch: int
    discount: float
    target_rate: float
    value_target: ValueTarget
    expectile: float = 0.9
    hidden: int | None
    start: float
    max_grad_norm: float
    candidates: int = 1
    rank_with: RankWith = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorPhase:
    """How the policy learns in an iteration from the critic's advantages."""

    lr: float
    updates: int
    batch: int
    max_grad_norm: float
    advantage: Literal["plain", "centred"] = "plain"
    kl_penalty: float = 0.0


class CriticLearner:
    """What ArCHer and CHAI share: the phase `critic`, with a slow copy behind it."""

    phases: Sequence[str] = (CRITIC,)

    def __init__(self, learning: Learning, critic: CriticPhase) -> None:
        """Without an encoder of its own the critic's body is a copy of the policy's at first."""
        self._with, self._critic_phase = learning, critic
        torch.manual_seed(learning.seed)  # the weights of the heads
        self.critic = new_critic(
            learning.policy, critic.hidden, critic.start, reader=learning.encoder
        )
        self.target = target_copy(self.critic)
        self.optimisers: Mapping[str, Optimizer] = {
            CRITIC: Adam(self.critic.parameters(), lr=critic.lr)
        }

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """What a run goes on from."""
        return {"policy": self._with.policy, "critic": self.critic, "target": self.target}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        if phase != CRITIC:
            raise ValueError(f"no phase {phase!r}")
        told = self._agreement(buffer) if iteration else {}
        return {**told, **self.learn_values(iteration, buffer)}

    def learn_values(self, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """The steps of the critic."""
        phase, seed = self._critic_phase, self._with.seed
        batches = [
            buffer.draw(phase.batch, key_of(seed, "replay", iteration, step))
            for step in range(phase.updates)
        ]
        drawn: list[Text] = []
        if phase.value_target == "policy":
            states = [row.state for batch in batches for row in batch]
            drawn = self._replies(states, "value", iteration, draws=phase.candidates)
        settings = CriticSettings(
            discount=phase.discount, target_rate=phase.target_rate, clip=phase.max_grad_norm,
            value_target=phase.value_target, expectile=phase.expectile, rank_with=phase.rank_with,
        )  # fmt: skip
        sums: dict[str, list[float]] = {}
        rest = iter(drawn)
        for batch in batches:
            fresh = [*itertools.islice(rest, len(batch) * phase.candidates)]
            loss, norm = critic_step(
                self.critic,
                self.target,
                self.optimisers[CRITIC],
                _batch_of(batch, fresh),
                settings,
            )
            told = {
                "q1.loss": loss.q1, "q2.loss": loss.q2, "v1.loss": loss.v1, "v2.loss": loss.v2,
                "grad_norm": norm,
            }  # fmt: skip
            for name, number in told.items():
                sums.setdefault(name, []).append(float(number))
        return {name: statistics.fmean(numbers) for name, numbers in sums.items()}

    def _replies(
        self, states: Sequence[TextPrefix], purpose: Purpose, *places: int, draws: int = 1
    ) -> list[Text]:
        """Fresh ones in these states, `draws` for each beside each other."""
        keys = [key_of(self._with.seed, purpose, *places, row) for row in range(len(states))]
        asked = [
            DrawRequest(at.ids, (key, number))
            for at, key in zip(states, keys, strict=True)
            for number in range(draws)
        ]
        return [Text(one.ids) for one in self._with.sampler.draw(asked, self._with.decode)]

    def _agreement(self, buffer: ReplayBuffer) -> Numbers:
        """How the critic, which has not seen them yet, judges what was just played: correlations
        over turns of its Q with the discounted return that followed, and of its advantage with
        what that return had over its V."""
        discount = self._critic_phase.discount
        rows = [row for one in buffer.fresh for row in utterances(one, discount)]
        values, better = [], []
        size = self._with.micro_batch
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            with torch.no_grad():
                features = self.critic.read([row.state for row in part] + [r.reply for r in part])
                seen, said = features.chunk(2)
                q, v = self.critic.q(seen, said), self.critic.v(seen)
            values += v.least().tolist()
            better += advantage(q, v).tolist()
        worth = [row.to_go for row in rows]
        q_values = [v + a for v, a in zip(values, better, strict=True)]
        surprise = [w - v for w, v in zip(worth, values, strict=True)]
        return {
            "q.correlation": _correlation(q_values, worth),
            "advantage.correlation": _correlation(better, surprise),
        }


class ArcherLearner(CriticLearner):
    """The phase `actor` behind it: the policy by the critic's advantages."""

    phases: Sequence[str] = (CRITIC, ACTOR)

    def __init__(self, learning: Learning, critic: CriticPhase, actor: ActorPhase) -> None:
        """The reference is the policy that the run starts from."""
        super().__init__(learning, critic)
        self._actor_phase = actor
        policy = learning.policy
        self._reference = None
        if actor.kl_penalty:
            self._reference = copy.deepcopy(policy).requires_grad_(False)
        self.optimisers = {**self.optimisers, ACTOR: Adam(policy.parameters(), lr=actor.lr)}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        if phase == ACTOR:
            return self.improve(iteration, buffer)
        return super().learn(phase, iteration, buffer)

    def improve(self, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """The steps of the policy, on fresh replies of its own weighted by their advantages."""
        phase, policy = self._actor_phase, self._with.policy
        # Of others the critic can only guess: a policy that goes there has nothing to hold it.
        met = {turn.reply.ids for one in buffer.episodes for turn in one.turns}
        sums: dict[str, list[float]] = {}
        for step in range(phase.updates):
            rows = buffer.draw(phase.batch, key_of(self._with.seed, "actor", iteration, step))
            states = [row.state for row in rows]
            replies = self._replies(states, "actor", iteration, step)
            better = self.advantages(states, replies)
            pairs = [(state.ids, reply.ids) for state, reply in zip(states, replies, strict=True)]
            told: dict[str, float] = {
                "advantage.mean": float(better.mean()),
                "advantage.sd": float(better.std()) if len(rows) > 1 else 0.0,
                "reply_tokens.mean": statistics.fmean(len(reply.ids) for reply in replies),
                "unmet": statistics.fmean(reply.ids not in met for reply in replies),
            }
            if self._reference is not None:
                left = self._left(self._reference, pairs)
                told["kl"] = float(left.mean())
                better = better - phase.kl_penalty * left
            if phase.advantage == "centred":
                better = better - better.mean()

            def loss(
                log_probs: Tensor,
                mask: Tensor,
                part: Sequence[int],
                of: Tensor = better,
            ) -> Tensor:
                return policy_gradient_loss(log_probs, mask, of[[*part]])

            told["loss"], told["grad_norm"] = actor_step(
                policy, self.optimisers[ACTOR], pairs, loss,
                micro_batch=self._with.micro_batch, clip=phase.max_grad_norm,
            )  # fmt: skip
            for name, number in told.items():
                sums.setdefault(name, []).append(number)
        return {name: statistics.fmean(numbers) for name, numbers in sums.items()}

    def advantages(self, states: Sequence[TextPrefix], replies: Sequence[Text]) -> Tensor:
        """[B], what the critic as it is has of each reply over its state; in pieces of the run's
        micro-batch."""
        found = []
        size = self._with.micro_batch
        for start in range(0, len(states), size):
            part = slice(start, start + size)
            with torch.no_grad():
                features = self.critic.read([*states[part], *map(whole_text, replies[part])])
                seen, said = features.chunk(2)
                found.append(advantage(self.critic.q(seen, said), self.critic.v(seen)))
        return torch.cat(found)

    def _left(self, reference: Any, pairs: Sequence[Row]) -> Tensor:
        """[B] nats by which the policy likes its replies better than its start did."""
        size = self._with.micro_batch
        now = per_row(partial(reply_log_probs, self._with.policy), pairs, size)
        then = per_row(partial(reply_log_probs, reference), pairs, size)
        return torch.stack([(one - other).sum() for one, other in zip(now, then, strict=True)])


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """0 where one of them does not vary."""
    if len(one) < 2 or min(one) == max(one) or min(other) == max(other):
        return 0.0
    return statistics.correlation(one, other)


def _batch_of(rows: Sequence[Utterance], drawn: Sequence[Text]) -> Utterances:
    return Utterances(
        states=[row.state for row in rows],
        replies=[row.reply for row in rows],
        rewards=torch.tensor([row.reward for row in rows]),
        following=[row.following for row in rows],
        to_go=torch.tensor([row.to_go for row in rows]),
        drawn=[*map(whole_text, drawn)],
    )


class ChaiLearner(CriticLearner):
    """One phase, `critic`. Who acts asks `choice`, from the first iteration on: the released code
    knows no iterations before."""

    def __init__(self, learning: Learning, critic: CriticPhase) -> None:
        super().__init__(learning, critic)
        ranking = self.target if critic.rank_with == "target" else self.critic
        self.choice = BestOf(ranking, critic.candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineActorPhase(ActorPhase):
    """How the policy learns from the critic: from stored replies weighted by
    exp(advantage / `temperature`), at most `clip_weight` (`awr`), or from fresh ones as online
    ArCHer does (`policy_gradient`)."""

    objective: Literal["awr", "policy_gradient"] = "awr"
    temperature: float = 1.0
    clip_weight: float | None = None


class OfflineArcherLearner(ArcherLearner):
    """The phases of `ArcherLearner`, on a buffer to which nothing is added."""

    def __init__(self, learning: Learning, critic: CriticPhase, actor: OfflineActorPhase) -> None:
        super().__init__(learning, critic, actor)
        self._phase = actor

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        if phase == CRITIC:  # it is not judged by episodes that it has not seen: there are none
            return self.learn_values(iteration, buffer)
        if self._phase.objective == "awr":
            return self._imitate(iteration, buffer)
        return self.improve(iteration, buffer)

    def _imitate(self, iteration: int, buffer: ReplayBuffer) -> Numbers:
        phase, learning = self._phase, self._with
        sums: dict[str, list[float]] = {}
        for step in range(phase.updates):
            rows = buffer.draw(phase.batch, key_of(learning.seed, "imitate", iteration, step))
            better = self.advantages([row.state for row in rows], [row.reply.text for row in rows])
            weights = advantage_weights(better, phase.temperature, phase.clip_weight)

            def loss(
                log_probs: Tensor, mask: Tensor, part: Sequence[int], of: Tensor = weights
            ) -> Tensor:
                return imitation_loss(log_probs, mask, of[[*part]])

            found, norm = actor_step(
                learning.policy,
                self.optimisers[ACTOR],
                [(row.state.ids, row.reply.ids) for row in rows],
                loss,
                micro_batch=learning.micro_batch,
                clip=phase.max_grad_norm,
            )
            told = {
                "advantage.mean": float(better.mean()),
                "advantage.sd": float(better.std()) if len(rows) > 1 else 0.0,
                "weight.max": float(weights.max()),
                "loss": found,
                "grad_norm": norm,
            }
            for name, number in told.items():
                sums.setdefault(name, []).append(number)
        return {name: statistics.fmean(numbers) for name, numbers in sums.items()}
