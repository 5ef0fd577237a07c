"""Carries out spliced actions in the environment: does the good part still work after the bad one?

The published method never does. A splice that worked on paper only teaches a recovery that the
environment would not allow: items were used up, doors shut, the signal's action ended the episode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentc_backends.agents.common.episode import EpisodeSession, EpisodeSource, Step
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.runner import Lost, until_answered
from agentc_backends.agents.revise.judge import stop_all
from agentc_backends.agents.revise.pairs import Pair
from agentc_backends.agents.revise.splice import shared_length
from agentc_backends.agents.revise.trees import Steps

_SAME = 1e-6
"""Rewards that differ by less are equal: sums of floats differ by rounding."""

Because: TypeAlias = Literal["ended_before_signal", "signal_ended", "ended_early", "other_reward"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a splice. `because` says why it is not `verified`; `same_observations`: the good
    part showed what the row says, spaces aside."""

    verified: bool
    because: Because | None
    reward: float
    same_observations: bool


class Replayer:
    """Tries splices out, each once; trials are journaled."""

    def __init__(
        self,
        world: EpisodeSource,
        signal_action: str,
        reward_kind: str,
        lost: Lost,
        journal: Journal,
    ) -> None:
        self._world = world
        self._signal_action = signal_action
        self._reward_kind = reward_kind
        self._lost = lost
        self._journal = journal
        self._trials: dict[tuple[str, int, int], asyncio.Task[Trial]] = {}

    async def trial(self, pair: Pair, length: int) -> Trial:
        """Try a pair out whose bad path is kept to `length` actions. Pairs that come to the same
        actions share a trial. Raises InfrastructureError, ServerLostError."""
        bad = pair.tree.steps(pair.bad)[:length]
        key = (pair.tree.name, bad[-1].id, pair.good)
        if key not in self._trials:
            self._trials[key] = asyncio.create_task(self._try(pair, bad))
        return await asyncio.shield(self._trials[key])

    def close(self) -> None:
        """Stop what is still in flight."""
        stop_all(self._trials.values())

    async def _try(self, pair: Pair, bad: Steps) -> Trial:
        known = self._journal.finished.get((pair.tree.name, bad[-1].id, pair.good))
        if known is None:
            trial = await until_answered(lambda: self._play(pair, bad), self._lost, pair.name)
            self._journal.append(
                {
                    "end": "played",
                    "tree": pair.tree.name,
                    "bad": bad[-1].id,
                    "good": pair.good,
                    "trial": [
                        trial.verified,
                        trial.because,
                        trial.reward,
                        trial.same_observations,
                    ],
                }
            )
            return trial
        return Trial(*known["trial"])

    async def _play(self, pair: Pair, bad: Steps) -> Trial:
        tree = pair.tree
        good = tree.steps(pair.good)
        rest = good[shared_length(bad, good) :]
        rewards: list[float] = []
        same = True
        async with self._world.open(tree.task_id, tree.prompt_seed) as session:
            # Replies without an action never reached the environment.
            before = [node.action for node in (*tree.given, *bad) if node.action]
            if not await _all(session, before, rewards):
                return self._failed("ended_before_signal", rewards)
            if not await _all(session, [self._signal_action], rewards):
                return self._failed("signal_ended", rewards)
            acted = [node for node in rest if node.action]
            for number, node in enumerate(acted):
                step = await session.step(node.action)
                rewards.append(step.reward)
                same = same and step.observation.split() == node.observation.split()
                if _over(step) and number + 1 < len(acted):
                    return self._failed("ended_early", rewards)
        reward = self._score(rewards)
        if abs(reward - good[-1].reward) > _SAME:
            return Trial(False, "other_reward", reward, same)
        return Trial(True, None, reward, same)

    def _failed(self, because: Because, rewards: Sequence[float]) -> Trial:
        return Trial(False, because, self._score(rewards), False)

    def _score(self, rewards: Sequence[float]) -> float:
        """The score of the episode so far, as the search reckons it."""
        if not rewards:
            return 0.0
        match self._reward_kind:
            case "sum":
                return max(sum(rewards), 0.0)
            case "max":
                return max(*rewards, 0.0)
            case _:
                return max(rewards[-1], 0.0)


async def _all(session: EpisodeSession, actions: Sequence[str], rewards: list[float]) -> bool:
    """Carry out actions; False when the episode is over, so that nothing can follow."""
    for action in actions:
        step = await session.step(action)
        rewards.append(step.reward)
        if _over(step):
            return False
    return True


def _over(step: Step) -> bool:
    # A negative reward ends an episode of a search, whatever the environment says.
    return step.done or step.reward < 0


def trial_fields(trial: Trial) -> dict[str, Any]:
    """What a row says of its trial."""
    return {
        "verified": trial.verified,
        "unverified_because": trial.because,
        "same_observations": trial.same_observations,
    }
