"""Learner: what the loop asks of an algorithm. `archer.py`, `filtered_bc.py` and `ppo.py` are such
ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from torch import nn
from torch.optim import Optimizer

from agentc_backends.trainers.online_rl.reading import Reader
from agentc_backends.trainers.online_rl.replay import ReplayBuffer
from agentc_backends.trainers.online_rl.sampling import Decode, Sampler

ACTOR = "actor"
"""The phase in which the policy learns; none of it in the iterations of warm-up."""
Numbers: TypeAlias = dict[str, float]
"""Of a phase, by their names; they stand in the iteration's row of the curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """What every algorithm learns with. `policy` is the module that `sampler` draws from; `seed`
    is the run's; so many rows go through a model at once. `encoder` reads for a critic, where the
    run has one of its own."""

    policy: Any
    tokenizer: Any
    sampler: Sampler
    decode: Decode
    seed: int
    micro_batch: int
    encoder: Reader | None = None


class Learner(Protocol):
    """`phases` of an iteration, in order; that of the policy is `actor`. What a phase does is a
    function of the run's seed, the iteration, the buffer and the learner's state, which is
    `modules` and `optimisers` by name."""

    @property
    def phases(self) -> Sequence[str]: ...

    @property
    def modules(self) -> Mapping[str, nn.Module]: ...

    @property
    def optimisers(self) -> Mapping[str, Optimizer]: ...

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        ...
