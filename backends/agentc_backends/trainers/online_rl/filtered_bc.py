"""Online filtered behaviour cloning: the best of what was played is imitated.

The rival of `archer.py` in the paper's section 5. Neighbours: `returns.py` chooses the episodes,
`actor_step.py` takes the step.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from agentc_backends.trainers.online_rl.actor_step import actor_step
from agentc_backends.trainers.online_rl.archer import ActorPhase
from agentc_backends.trainers.online_rl.learner import ACTOR, Learning, Numbers
from agentc_backends.trainers.online_rl.losses import imitation_loss
from agentc_backends.trainers.online_rl.replay import ReplayBuffer, key_of
from agentc_backends.trainers.online_rl.returns import best_share


class FilteredLearner:
    """One phase: steps on turns of the best `share` of the newest `window` episodes."""

    phases: Sequence[str] = (ACTOR,)

    def __init__(
        self, learning: Learning, actor: ActorPhase, share: float, window: int | None
    ) -> None:
        self._with, self._phase = learning, actor
        self._share, self._window = share, window
        self.optimisers: Mapping[str, Optimizer] = {
            ACTOR: Adam(learning.policy.parameters(), lr=actor.lr)
        }

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """What changes."""
        return {"policy": self._with.policy}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of the phase."""
        kept = [one for one in buffer.episodes if one.turns][-(self._window or 0) :]
        cutoff, best = best_share([one.total for one in kept], self._share)
        losses, norms = [], []
        for step in range(self._phase.updates):
            key = key_of(self._with.seed, "imitate", iteration, step)
            chosen = buffer.draw(self._phase.batch, key, [kept[number] for number in best])
            loss, norm = actor_step(
                self._with.policy,
                self.optimisers[ACTOR],
                [(row.state.ids, row.reply.ids) for row in chosen],
                _imitation,
                micro_batch=self._with.micro_batch,
                clip=self._phase.max_grad_norm,
            )
            losses.append(loss)
            norms.append(norm)
        return {
            "cutoff": cutoff,
            "imitated": float(len(best)),
            "kept": float(len(kept)),
            "loss": statistics.fmean(losses),
            "grad_norm": statistics.fmean(norms),
        }


def _imitation(log_probs: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
    return imitation_loss(log_probs, mask)
