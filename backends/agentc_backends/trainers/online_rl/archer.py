"""ArCHer (Zhou et al., ICML 2024, algorithm 1), its offline form, and CHAI (Verma et al. 2022).

A critic of whole utterances learns from the replay buffer; then the policy learns from the critic's
advantages. The critic's networks and its gradient step are in `critic.py`, the formulas of both in
`losses.py`. The policy does not change in a critic phase, so all replies that the phase needs are
drawn at once before it (docs/design/archer.md).
"""

from __future__ import annotations

import copy
import itertools
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from agentc.kinds.reinforcement import ActorSteps, OfflineActorSteps
from agentc.program.settings import settings_from
from agentc_backends.trainers.online_rl.critic import (
    BestOf,
    Utterances,
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
from agentc_backends.trainers.online_rl.settings import CriticPhase

CRITIC = "critic"
"""The phase in which the critic learns."""


class CriticLearner:
    """The phase `critic`, which ArCHer and CHAI share: a critic and its slowly updated target."""

    phases: Sequence[str] = (CRITIC,)

    def __init__(self, learning: Learning, critic: CriticPhase) -> None:
        """Unless the run has an encoder, the critic's body starts as a copy of the policy's."""
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
        """All networks of the learner's state."""
        return {"policy": self._with.policy, "critic": self.critic, "target": self.target}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase. Raises ValueError for an unknown phase."""
        if phase != CRITIC:
            raise ValueError(f"no phase {phase!r}")
        correlations = self._correlations(buffer) if iteration else {}
        return {**correlations, **self.learn_values(iteration, buffer)}

    def learn_values(self, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """The gradient steps of the critic."""
        phase, seed = self._critic_phase, self._with.seed
        batches = [
            buffer.draw(phase.batch, key_of(seed, "replay", iteration, step))
            for step in range(phase.updates)
        ]
        drawn: list[Text] = []
        if phase.value_target == "policy":
            states = [row.state for batch in batches for row in batch]
            drawn = self._draw_replies(states, "value", iteration, draws=phase.candidates)
        steps: list[Numbers] = []
        unused = iter(drawn)
        for batch in batches:
            replies = [*itertools.islice(unused, len(batch) * phase.candidates)]
            loss, norm = critic_step(
                self.critic,
                self.target,
                self.optimisers[CRITIC],
                _critic_batch(batch, replies),
                phase,
            )
            steps.append({
                "q1.loss": float(loss.q1), "q2.loss": float(loss.q2),
                "v1.loss": float(loss.v1), "v2.loss": float(loss.v2),
                "grad_norm": norm,
            })  # fmt: skip
        return _step_means(steps)

    def _draw_replies(
        self, states: Sequence[TextPrefix], purpose: Purpose, *places: int, draws: int = 1
    ) -> list[Text]:
        """`draws` replies of the policy for each state; those of a state are adjacent."""
        keys = [key_of(self._with.seed, purpose, *places, row) for row in range(len(states))]
        requests = [
            DrawRequest(state.ids, (key, number))
            for state, key in zip(states, keys, strict=True)
            for number in range(draws)
        ]
        return [Text(reply.ids) for reply in self._with.sampler.draw(requests, self._with.decode)]

    def _correlations(self, buffer: ReplayBuffer) -> Numbers:
        """How well the critic predicts the newest episodes, which it was not trained on yet. Over
        their turns: the correlation of Q with the discounted return to go, and of the advantage
        with that return minus V."""
        discount = self._critic_phase.discount
        rows = [row for episode in buffer.fresh for row in utterances(episode, discount)]
        v, better = self._evaluate([row.state for row in rows], [row.reply for row in rows])
        values, advantages = v.tolist(), better.tolist()
        returns = [row.to_go for row in rows]
        q_values = [v + a for v, a in zip(values, advantages, strict=True)]
        surprises = [r - v for r, v in zip(returns, values, strict=True)]
        return {
            "q.correlation": _correlation(q_values, returns),
            "advantage.correlation": _correlation(advantages, surprises),
        }

    def _evaluate(
        self, states: Sequence[TextPrefix], replies: Sequence[TextPrefix]
    ) -> tuple[Tensor, Tensor]:
        """The critic's V of each state and its advantage of each reply there, [B] each, without
        gradient and in micro-batches."""
        values: list[Tensor] = []
        advantages: list[Tensor] = []
        size = self._with.micro_batch
        for start in range(0, len(states), size):
            part = slice(start, start + size)
            with torch.no_grad():
                features = self.critic.read([*states[part], *replies[part]])
                of_states, of_replies = features.chunk(2)
                q, v = self.critic.q(of_states, of_replies), self.critic.v(of_states)
            values.append(v.least())
            advantages.append(advantage(q, v))
        if not values:
            return torch.zeros(0), torch.zeros(0)
        return torch.cat(values), torch.cat(advantages)


class ArcherLearner(CriticLearner):
    """ArCHer: the phase `critic`, then `actor`, which trains the policy by the advantages."""

    phases: Sequence[str] = (CRITIC, ACTOR)

    def __init__(self, learning: Learning, critic: CriticPhase, actor: ActorSteps) -> None:
        """The reference of the KL penalty is the policy that the run starts from."""
        super().__init__(learning, critic)
        self._actor_phase = actor
        policy = learning.policy
        self._reference = None
        if actor.kl_penalty:
            self._reference = copy.deepcopy(policy).requires_grad_(False)
        self.optimisers = {**self.optimisers, ACTOR: Adam(policy.parameters(), lr=actor.lr)}

    @classmethod
    def of(cls, learning: Learning, settings: Mapping[str, Any]) -> ArcherLearner:
        """The learner of a plan's settings."""
        critic = settings_from(CriticPhase, settings["critic"])
        return cls(learning, critic, settings_from(ActorSteps, settings["actor"]))

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        if phase == ACTOR:
            return self.improve(iteration, buffer)
        return super().learn(phase, iteration, buffer)

    def improve(self, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """The gradient steps of the policy, on fresh replies weighted by their advantages."""
        phase, policy = self._actor_phase, self._with.policy
        # The critic was trained on these replies only: its advantage of another one is a guess,
        # and nothing holds back a policy that drifts to such replies.
        seen = {turn.reply.ids for episode in buffer.episodes for turn in episode.turns}
        steps: list[Numbers] = []
        for step in range(phase.updates):
            rows = buffer.draw(phase.batch, key_of(self._with.seed, "actor", iteration, step))
            states = [row.state for row in rows]
            replies = self._draw_replies(states, "actor", iteration, step)
            _, better = self._evaluate(states, [*map(whole_text, replies)])
            pairs = [(state.ids, reply.ids) for state, reply in zip(states, replies, strict=True)]
            numbers: Numbers = {
                **_spread(better),
                "reply_tokens.mean": statistics.fmean(len(reply.ids) for reply in replies),
                "unmet": statistics.fmean(reply.ids not in seen for reply in replies),
            }
            if self._reference is not None:
                kl = self._log_ratios(self._reference, pairs)
                numbers["kl"] = float(kl.mean())
                better = better - phase.kl_penalty * kl
            if phase.advantage == "centred":
                better = better - better.mean()

            def loss(
                log_probs: Tensor,
                mask: Tensor,
                part: Sequence[int],
                of: Tensor = better,
            ) -> Tensor:
                return policy_gradient_loss(log_probs, mask, of[[*part]])

            numbers["loss"], numbers["grad_norm"] = actor_step(
                policy, self.optimisers[ACTOR], pairs, loss,
                micro_batch=self._with.micro_batch, clip=phase.max_grad_norm,
            )  # fmt: skip
            steps.append(numbers)
        return _step_means(steps)

    def _log_ratios(self, reference: Any, pairs: Sequence[Row]) -> Tensor:
        """[B] log p(reply) of the policy minus that of the reference, in nats."""
        size = self._with.micro_batch
        now = per_row(partial(reply_log_probs, self._with.policy), pairs, size)
        then = per_row(partial(reply_log_probs, reference), pairs, size)
        return torch.stack([(new - old).sum() for new, old in zip(now, then, strict=True)])


class ChaiLearner(CriticLearner):
    """CHAI, as the ArCHer paper's baseline (section 5 and the released code): the policy is not
    trained; of several candidates it says the one that the critic ranks first.

    The critic learns as ArCHer's does, with V trained towards the reply that would be said. The
    policy acts by `choice` from the first iteration on, as in the released code.
    """

    def __init__(self, learning: Learning, critic: CriticPhase) -> None:
        super().__init__(learning, critic)
        ranking = self.target if critic.rank_with == "target" else self.critic
        self.choice = BestOf(ranking, critic.candidates)

    @classmethod
    def of(cls, learning: Learning, settings: Mapping[str, Any]) -> ChaiLearner:
        """The learner of a plan's settings."""
        return cls(learning, settings_from(CriticPhase, settings["critic"]))


class OfflineArcherLearner(ArcherLearner):
    """Offline ArCHer: the phases of `ArcherLearner` on a buffer of recorded episodes.

    The critic is trained by implicit Q-learning (Kostrikov et al., ICLR 2022) with utterances as
    actions, the policy by advantage-weighted regression (Peng et al., 2019). The released code
    alternates critic and policy on each batch; here an iteration takes all steps of the critic,
    then all steps of the policy, each on its own batch.
    """

    def __init__(self, learning: Learning, critic: CriticPhase, actor: OfflineActorSteps) -> None:
        super().__init__(learning, critic, actor)
        self._phase = actor

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        if phase == CRITIC:  # there are no new episodes for correlations
            return self.learn_values(iteration, buffer)
        if self._phase.objective == "awr":
            return self._imitate(iteration, buffer)
        return self.improve(iteration, buffer)

    def _imitate(self, iteration: int, buffer: ReplayBuffer) -> Numbers:
        phase, learning = self._phase, self._with
        steps: list[Numbers] = []
        for step in range(phase.updates):
            rows = buffer.draw(phase.batch, key_of(learning.seed, "imitate", iteration, step))
            _, better = self._evaluate([row.state for row in rows], [row.reply for row in rows])
            weights = advantage_weights(better, phase.temperature, phase.clip_weight)

            def loss(
                log_probs: Tensor, mask: Tensor, part: Sequence[int], of: Tensor = weights
            ) -> Tensor:
                return imitation_loss(log_probs, mask, of[[*part]])

            mean, norm = actor_step(
                learning.policy,
                self.optimisers[ACTOR],
                [(row.state.ids, row.reply.ids) for row in rows],
                loss,
                micro_batch=learning.micro_batch,
                clip=phase.max_grad_norm,
            )
            steps.append(
                {
                    **_spread(better),
                    "weight.max": float(weights.max()),
                    "loss": mean,
                    "grad_norm": norm,
                }
            )
        return _step_means(steps)


def _critic_batch(rows: Sequence[Utterance], drawn: Sequence[Text]) -> Utterances:
    return Utterances(
        states=[row.state for row in rows],
        replies=[row.reply for row in rows],
        rewards=torch.tensor([row.reward for row in rows]),
        following=[row.following for row in rows],
        to_go=torch.tensor([row.to_go for row in rows]),
        drawn=[*map(whole_text, drawn)],
    )


def _spread(advantages: Tensor) -> Numbers:
    return {
        "advantage.mean": float(advantages.mean()),
        "advantage.sd": float(advantages.std()) if len(advantages) > 1 else 0.0,
    }


def _step_means(steps: Sequence[Numbers]) -> Numbers:
    """The mean of each number over the gradient steps of a phase."""
    if not steps:
        return {}
    return {name: statistics.fmean(step[name] for step in steps) for name in steps[0]}


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """0 where one of them does not vary."""
    if len(one) < 2 or min(one) == max(one) or min(other) == max(other):
        return 0.0
    return statistics.correlation(one, other)
