"""Offline ArCHer: the critic learns from episodes that are there, and the policy imitates their
replies, the more the better the critic thinks of them.

Zhou et al. (ICML 2024), offline; implicit Q-learning (Kostrikov et al., ICLR 2022) with utterances
as actions, and advantage-weighted regression (Peng et al., 2019). The released code takes a step of
the critic and one of the policy on each batch; here an iteration takes all steps of the critic,
then those of the policy, each on a batch of its own. Neighbours: `archer.py`, whose critic it is;
`recorded.py`, the episodes.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from agentc_backends.trainers.online_rl.actor_step import actor_step
from agentc_backends.trainers.online_rl.archer import (
    CRITIC,
    ActorPhase,
    ArcherLearner,
    CriticPhase,
)
from agentc_backends.trainers.online_rl.learner import ACTOR, Learning, Numbers
from agentc_backends.trainers.online_rl.losses import advantage_weights, imitation_loss
from agentc_backends.trainers.online_rl.replay import ReplayBuffer, key_of


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
