"""Makes the reward of an episode from the rewards of its steps, in agentc's units.

Every server of the family then looks alike: each step carries the score of the episode so far
(`reward_kind: latest`), within the declared range.
"""

from __future__ import annotations

from agentc_backends.environments.agentgym.dialect import UpstreamDialect
from agentc_backends.environments.agentgym.exchange import UpstreamError

_SLACK = 1e-6


class RunningScore:
    """The running reward of one episode."""

    __slots__ = ("_best", "_dialect", "_sum")

    def __init__(self, dialect: UpstreamDialect) -> None:
        self._dialect = dialect
        self._sum = 0.0
        self._best: float | None = None

    def after(self, reward: float) -> float:
        """The episode's reward after a step of this raw reward.

        Raises UpstreamError when it leaves the declared range: the dialect is then wrong, and a
        learner would be trained on numbers that mean something else.
        """
        dialect = self._dialect
        self._sum += reward
        self._best = reward if self._best is None else max(self._best, reward)
        found = {"latest": reward, "sum": self._sum, "max": self._best}[dialect.reward_kind]
        low, high = dialect.reward_range
        if not low - _SLACK <= found <= high + _SLACK:
            raise UpstreamError(
                f"the episode's reward is {found:g}, but `reward_range` of the dialect "
                f"`{dialect.name}` is {low:g} to {high:g} (reward_kind: {dialect.reward_kind})"
            )
        return min(max(found, low), high) * dialect.reward_scale
