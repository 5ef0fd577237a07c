"""CHAI: the policy stays as it is, and says the best of several candidates by a critic that learns.

Verma et al. 2022, as the ArCHer paper's baseline (section 5, and the released code's agent): the
critic learns as ArCHer's does, with V held to the reply that would be said. Neighbours: `archer.py`
has that critic's phase, `best_of.py` the choice.
"""

from __future__ import annotations

from agentc_backends.trainers.online_rl.archer import CriticLearner, CriticPhase
from agentc_backends.trainers.online_rl.best_of import BestOf
from agentc_backends.trainers.online_rl.learner import Learning


class ChaiLearner(CriticLearner):
    """One phase, `critic`. Who acts asks `choice`, from the first iteration on: the released code
    knows no iterations before."""

    def __init__(self, learning: Learning, critic: CriticPhase) -> None:
        super().__init__(learning, critic)
        ranking = self.target if critic.rank_with == "target" else self.critic
        self.choice = BestOf(ranking, critic.candidates)
