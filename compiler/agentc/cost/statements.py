"""What backends state of themselves for estimates. Environments: numbers of tasks, lengths of an
expert's episode, step limits; trainers: the width of what they write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentc.backend_api import BackendTable, EnvironmentBackend, ExpectedExpert, StageBackend
from agentc.cost.quantities import Quantity

_USUAL_TURNS = 30
_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}


HALVES = "bfloat16_weights"
"""The capability of a trainer that keeps and writes its weights in bfloat16."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The declarations, by the id of the backend; none is known to an empty one. `halving`
    trainers write their weights in 16 bits."""

    environments: Mapping[str, EnvironmentBackend] = field(default_factory=dict)
    halving: frozenset[str] = frozenset()

    @classmethod
    def of(cls, table: BackendTable | None) -> Stated:
        """What the installed backends state."""
        if table is None:
            return cls()
        halving = (b.id for b in table if isinstance(b, StageBackend) and HALVES in b.capabilities)
        known = {each.id: each for each in table.environments()}
        return cls(known, frozenset(halving))

    def weight_bytes(self, backend: str, adapters: bool, save_dtype: object) -> int:
        """Bytes of a weight in the checkpoint that a training leaves, where its `save_dtype` says
        nothing of it; adapters are merged into float32 weights."""
        if isinstance(save_dtype, str) and save_dtype in _WIDTHS:
            return _WIDTHS[save_dtype]
        return 2 if backend in self.halving and not adapters else 4

    def tasks(self, backend: str, identity: str, split: str) -> Quantity | None:
        """Tasks of a split of an environment with this identity (JSON), where it is stated."""
        declared = self.environments.get(backend)
        if declared is None or declared.expected_tasks is None:
            return None
        try:
            median, factor = declared.expected_tasks(json.loads(identity))[split]
        except (KeyError, TypeError, ValueError):
            return None
        return Quantity.between(float(median), max(1.0, float(factor)))

    def expert(self, backend: str, identity: str) -> ExpectedExpert | None:
        """What an expert's episode is like, where it is stated."""
        declared = self.environments.get(backend)
        if declared is None or declared.expected_expert is None:
            return None
        try:
            return declared.expected_expert(json.loads(identity))
        except (KeyError, TypeError, ValueError):
            return None

    def max_turns(self, backend: str) -> int:
        """The step limit of episodes."""
        declared = self.environments.get(backend)
        return _USUAL_TURNS if declared is None else declared.max_turns
