"""Which of several candidates is said: the one whose Q is the highest, by the smaller of two heads.

CHAI: Verma et al. 2022, as the ArCHer paper's baseline has it (section 5 and its released code).
The job that trains a critic and the server that reads it out of the run both choose here, each turn
by itself, so that they choose alike. Neighbours: `chai.py`, `acting.py`, `run_critic.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from agentc_backends.trainers.online_rl.critic import Critic
from agentc_backends.trainers.online_rl.reading import Text, whole

RankWith: TypeAlias = Literal["target", "online"]
"""Who ranks candidates: the slow copy of the critic, as released, or the critic itself."""


def best_of(worth: Tensor) -> Tensor:
    """[B, draws] -> [B], the number of each row's highest; of equal ones the first."""
    highest = worth == worth.max(dim=1, keepdim=True).values
    return highest.to(torch.uint8).argmax(dim=1)


@dataclass(frozen=True, slots=True)
class BestOf:
    """Chooses among so many `candidates` by a critic as it is at the moment."""

    critic: Critic
    candidates: int

    def pick(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> int:
        """The number of the reply that is said behind a prompt, all in tokens. The critic reads the
        prompt, and each distinct reply, in passes that nothing else takes part in: the last bits of
        what it says depend on this turn alone."""
        texts = [Text(tuple(reply)) for reply in replies]
        distinct = list(dict.fromkeys(texts))
        if len(distinct) == 1:
            return 0
        with torch.no_grad():
            state = self.critic.read([whole(Text(tuple(prompt)))])
            said = self.critic.read([whole(text) for text in distinct])
            q = self.critic.q(state.expand(len(distinct), -1), said)
        return texts.index(distinct[int(best_of(q.least()[None]))])
