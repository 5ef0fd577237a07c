"""Online filtered behaviour cloning: the policy imitates the best of its own episodes.

A baseline of the ArCHer paper (section 5).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from agentc.kinds.reinforcement import ActorSteps
from agentc.program.settings import settings_from
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning, Numbers, actor_step
from agentc_backends.trainers.online_rl.losses import imitation_loss
from agentc_backends.trainers.online_rl.replay import ReplayBuffer, key_of
from agentc_backends.trainers.online_rl.settings import ImitationOptions


class FilteredLearner:
    """One phase: steps on turns of the best `keep_share` of the newest `window` episodes."""

    phases: Sequence[str] = (ACTOR,)

    def __init__(self, learning: Learning, actor: ActorSteps, options: ImitationOptions) -> None:
        self._with, self._phase = learning, actor
        self._share, self._window = options.keep_share, options.window
        self.optimisers: Mapping[str, Optimizer] = {
            ACTOR: Adam(learning.policy.parameters(), lr=actor.lr)
        }

    @classmethod
    def of(cls, learning: Learning, settings: Mapping[str, Any]) -> FilteredLearner:
        """The learner of a plan's settings."""
        options = {name: settings[name] for name in ("keep_share", "window")}
        return cls(
            learning,
            settings_from(ActorSteps, settings["actor"]),
            settings_from(ImitationOptions, options),
        )

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """The network that is trained."""
        return {"policy": self._with.policy}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of the phase."""
        episodes = [episode for episode in buffer.episodes if episode.turns]
        episodes = episodes[-(self._window or 0) :]
        cutoff, best = best_share([episode.total for episode in episodes], self._share)
        losses, norms = [], []
        for step in range(self._phase.updates):
            key = key_of(self._with.seed, "imitate", iteration, step)
            rows = buffer.draw(self._phase.batch, key, [episodes[number] for number in best])
            loss, norm = actor_step(
                self._with.policy,
                self.optimisers[ACTOR],
                [(row.state.ids, row.reply.ids) for row in rows],
                _imitation,
                micro_batch=self._with.micro_batch,
                clip=self._phase.max_grad_norm,
            )
            losses.append(loss)
            norms.append(norm)
        return {
            "cutoff": cutoff,
            "imitated": float(len(best)),
            "kept": float(len(episodes)),
            "loss": statistics.fmean(losses),
            "grad_norm": statistics.fmean(norms),
        }


def _imitation(log_probs: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
    return imitation_loss(log_probs, mask)


def best_share(returns: Sequence[float], share: float) -> tuple[float, list[int]]:
    """The return that the best `share` of episodes reach, interpolated between two of them, and the
    numbers of the episodes that reach it: all, where all returns are equal (as released). Raises
    ValueError for no episodes."""
    if not returns:
        raise ValueError("no episodes to choose from")
    ordered = sorted(returns)
    place = (1 - share) * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    least = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return least, [number for number, value in enumerate(returns) if value >= least]


def filter_warning(curve: Iterable[Mapping[str, Any]], share: float) -> str | None:
    """The warning about a run whose filter passed most episodes: all that are as good as the worst
    of the best are imitated, so where few episodes succeed, all of them may be. `curve` has the
    run's rows; None where this was so in at most half of the iterations."""
    steps = [row["actor"] for row in curve if "kept" in row.get("actor", {})]
    # With fewer episodes, a share that holds one episode is too many already.
    phases = [step for step in steps if share * step["kept"] >= 1]
    crowded = [step for step in phases if step["imitated"] > 2 * share * step["kept"]]
    if 2 * len(crowded) <= len(phases):
        return None
    last = crowded[-1]
    return (
        f"in {len(crowded)} of {len(phases)} iterations more than twice the best "
        f"{100 * share:g}% of episodes were imitated, {last['imitated']:.0f} of "
        f"{last['kept']:.0f} in the last of them: N have a return of at least "
        f"{last['cutoff']:g}. Set `keep_share` below the share of episodes that reach more"
    )
