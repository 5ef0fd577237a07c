"""Online filtered behaviour cloning: the best of what was played is imitated.

The rival of `archer.py` in the paper's section 5. Neighbours: `returns.py` chooses the episodes,
`actor_step.py` takes the step.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from agentc_backends.trainers.online_rl.archer import ActorPhase
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning, Numbers, actor_step
from agentc_backends.trainers.online_rl.losses import imitation_loss
from agentc_backends.trainers.online_rl.replay import ReplayBuffer, key_of


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


def best_share(returns: Sequence[float], share: float) -> tuple[float, list[int]]:
    """The return that is reached by the best `share` of episodes, between two of them by a line,
    and the numbers of those that reach it: all, where all are alike (online filtered BC, as
    released). Raises ValueError for no episodes."""
    if not returns:
        raise ValueError("no episodes to choose from")
    ordered = sorted(returns)
    place = (1 - share) * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    least = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return least, [number for number, one in enumerate(returns) if one >= least]


def filter_warning(curve: Iterable[Mapping[str, Any]], share: float) -> str | None:
    """What to say of a run of filtered BC whose filter let most through: episodes that are as good
    as the worst of the best are imitated too, so that where few reach anything all of them are.
    `curve` are the run's rows; None where at most half of the iterations were so."""
    steps = [row["actor"] for row in curve if "kept" in row.get("actor", {})]
    phases = [one for one in steps if share * one["kept"] >= 1]  # of fewer, one is too many
    crowded = [one for one in phases if one["imitated"] > 2 * share * one["kept"]]
    if 2 * len(crowded) <= len(phases):
        return None
    last = crowded[-1]
    return (
        f"in {len(crowded)} of {len(phases)} iterations more than twice the best "
        f"{100 * share:g}% of episodes were imitated, {last['imitated']:.0f} of "
        f"{last['kept']:.0f} in the last of them: so many have a return of at least "
        f"{last['cutoff']:g}. Set `keep_share` below the share of episodes that reach more"
    )
