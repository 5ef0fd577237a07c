"""What the environments' backends state of themselves for estimates: numbers of tasks, length of an
expert's episode, step limits. Read by workload.py through a Stated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentc.backend_api import BackendTable, EnvironmentBackend, ExpectedExpert
from agentc.cost.quantity import Quantity

_USUAL_TURNS = 30


@dataclass(frozen=True, slots=True)
class Stated:
    """The declarations, by the id of the backend; none is known to an empty one."""

    environments: Mapping[str, EnvironmentBackend] = field(default_factory=dict)

    @classmethod
    def of(cls, table: BackendTable | None) -> Stated:
        """What the installed backends state."""
        return cls({} if table is None else {each.id: each for each in table.environments()})

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
