"""Episodes of the model in training: which an iteration plays, and their rows.

What an episode draws follows from the run's seed, its task and its number alone, so those of an
iteration that was cut off are kept and the rest is played. Neighbours: `acting.py`, the policy;
`agents/rollout/episode.py`, an episode; `agents/common/runner.py`, many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy

from agentc.program.job import Job
from agentc_backends.agents.common.connect import Servers
from agentc_backends.agents.common.episode import Attempt, EpisodeRules
from agentc_backends.agents.common.runner import Hooks, Row, run_episodes
from agentc_backends.agents.common.seeds import episode_seed
from agentc_backends.agents.rollout.episode import BrokenEpisodeError, play
from agentc_backends.agents.rollout.turns import TurnRules
from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.trainers.online_rl.acting import LivePolicy
from agentc_backends.trainers.online_rl.played import with_turns
from agentc_backends.trainers.online_rl.replay import key_of


def attempts_of(
    tasks: Sequence[str],
    how: Literal["draw", "cycle"],
    seed: int,
    iteration: int,
    episodes: int,
    group: int = 1,
) -> list[Attempt]:
    """The episodes of an iteration, a multiple of `group`, which are of one task and prompt; they
    are numbered over the run, and prompt seeds are numbers too."""
    first, groups = iteration * episodes, episodes // group
    if how == "draw":
        key = key_of(seed, "act", iteration)
        chance = numpy.random.Generator(numpy.random.Philox(key=key))
        drawn = chance.integers(0, len(tasks), groups).tolist()
    else:
        drawn = [(iteration * groups + number) % len(tasks) for number in range(groups)]
    places = [place for place in drawn for _ in range(group)]
    return [
        Attempt(
            position=place,
            task_id=tasks[place],
            number=first + number,
            seed=episode_seed(seed, tasks[place], first + number),
            prompt_seed=first + number - number % group,
        )
        for number, place in enumerate(places)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingStage:
    """Where episodes are played, and by which rules; `split` has the tasks."""

    job: Job
    servers: Servers
    rules: EpisodeRules
    turns: TurnRules

    def on(self, split: str) -> ActingStage:
        """The same on another split."""
        return replace(self, rules=replace(self.rules, split=split))


async def play_all(
    stage: ActingStage,
    policy: LivePolicy,
    attempts: Sequence[Attempt],
    finished: Callable[[Row], None],
    *,
    reserve: float = 0.0,
) -> None:
    """Play the attempts; `finished` is given each row with its turns as it ends. Raises what
    `run_episodes` does, OutOfTimeError among it so many seconds before the limit."""
    left = stage.job.time_left()
    kind = stage.rules.reward_kind

    async def play_one(attempt: Attempt) -> Row:
        policy.said.pop(attempt.id, None)  # of a try that a failing server ended
        row = await play(stage.rules, stage.turns, attempt, policy, stage.servers.world)
        return with_turns(row, policy.said.pop(attempt.id, []), kind)

    def broken(attempt: Attempt, error: InfrastructureError) -> dict[str, Any]:
        assert isinstance(error, BrokenEpisodeError)
        return error.record.row("error", str(error))

    def done(row: Row) -> None:
        if row["end"] != "error":
            finished(row)

    async with policy.acting():
        await run_episodes(
            attempts,
            Hooks(
                play=play_one,
                lost=stage.servers.lost,
                finished=done,
                broken=broken,
                name=lambda attempt: attempt.id,
            ),
            concurrency=stage.job.placement["concurrency"],
            error_budget=0.0,
            total=len(attempts),
            time_left=None if left is None else max(0.0, left - reserve),
        )
