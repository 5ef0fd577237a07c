"""The loop of RL: each iteration evaluates the policy, plays episodes with it, and learns from
them. Offline RL, whose episodes are recorded, only learns.

Each phase is a function of the state before it and of the run's seed, so a run that is killed
anywhere and resumed ends with the same weights (on one kind of CPU). An episode depends on the
seed, its task and its number only, so those of an interrupted iteration are kept and the others
played.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy
from torch import nn

from agentc.kinds.reinforcement import RunEvaluation
from agentc.program.job import Job
from agentc_backends.agents.common.connect import Servers
from agentc_backends.agents.common.episode import Attempt, EpisodeRules, task_attempts
from agentc_backends.agents.common.failures import OutOfTimeError
from agentc_backends.agents.common.runner import Hooks, Row, run_episodes
from agentc_backends.agents.common.seeds import episode_seed
from agentc_backends.agents.rollout.play import BrokenEpisodeError, TurnRules, play
from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.trainers.common.checkpoints import Deadline
from agentc_backends.trainers.online_rl.learning import ACTOR, Learner
from agentc_backends.trainers.online_rl.publishing import OWN
from agentc_backends.trainers.online_rl.replay import (
    ReplayBuffer,
    episode_of_row,
    key_of,
    with_turns,
    without_turns,
)
from agentc_backends.trainers.online_rl.sampling import LivePolicy
from agentc_backends.trainers.online_rl.state import (
    RunFiles,
    RunPlace,
    RunStart,
    load_state,
    save_state,
)

MARK, COLLECT = "mark", "collect"
"""Phases besides the learner's: write and evaluate the policy where due; play episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """When the policy is evaluated during the run, on which tasks."""

    tasks: Sequence[str]
    when: RunEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSchedule:
    """The run's last iteration, those of warm-up, those whose policies are kept (`keep`), and the
    number of iterations between saves of the state."""

    iterations: int
    warmup: int
    keep: Sequence[int]
    save_every: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingStage:
    """Where episodes are played, and by which rules."""

    job: Job
    servers: Servers
    rules: EpisodeRules
    turns: TurnRules

    def on(self, split: str) -> ActingStage:
        """The same on another split of the tasks."""
        return replace(self, rules=replace(self.rules, split=split))


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """What a run plays: in each iteration `episodes` episodes on `tasks`, `group` of each task that
    is drawn. `evaluated` is the policy of the evaluations, which has decoding settings of its
    own."""

    stage: ActingStage
    policy: LivePolicy
    tasks: Sequence[str]
    draw: Any
    episodes: int
    seed: int
    group: int = 1
    evaluated: LivePolicy | None = None
    evaluation: Evaluation | None = None


@dataclass(slots=True, kw_only=True)
class Run:
    """One run; without `acting` it plays nothing. `start` is the first iteration and the earlier
    episodes; `keep_policy` writes the present policy into a folder."""

    job: Job
    schedule: RunSchedule
    acting: Acting | None
    learner: Learner
    buffer: ReplayBuffer
    files: RunFiles
    folder: Path
    keep_policy: Callable[[Path], None]
    start: RunStart
    place: RunPlace = field(default_factory=RunPlace)
    _deadline: Deadline = field(init=False)
    _saved: RunPlace | None = None

    async def go(self) -> None:
        """Run to the end, from the saved state if there is one. Raises OutOfTimeError once the
        state is saved."""
        start = self.start
        saved = load_state(self.folder, self.learner)
        self.place = self._saved = saved or RunPlace(start.iteration)
        self.files.open(self.place, start.iteration, start.last)
        self._deadline = Deadline(self.job)
        self._deadline.begin_step()
        for rows in start.played:
            self.buffer.add([*map(episode_of_row, rows)])
        if self.acting is not None:
            resumed_at = self.phases.index(COLLECT) < self.place.phase
            for iteration in range(start.iteration, self.place.iteration + resumed_at):
                self.buffer.add([*map(episode_of_row, self.files.episodes_of(iteration))])
        self.job.done_before(self.place.iteration)
        self._report_progress()
        while self.place.iteration < self.schedule.iterations:
            await self._step(self.phases[self.place.phase])
        self._announce(MARK)
        try:
            await self._mark()
        except OutOfTimeError:
            self._save()
            raise

    @property
    def phases(self) -> Sequence[str]:
        """The phases of an iteration."""
        acting = () if self.acting is None else (COLLECT,)
        return (MARK, *acting, *self.learner.phases)

    async def _step(self, phase: str) -> None:
        iteration, row = self.place.iteration, dict(self.place.row)
        self._announce(phase)
        started = time.monotonic()
        try:
            numbers = await self._do(phase, iteration)
        except OutOfTimeError:
            self._save()
            raise
        row |= numbers
        row["seconds"] = {**row.get("seconds", {}), phase: round(time.monotonic() - started, 3)}
        if self.place.phase + 1 < len(self.phases):
            self.place = RunPlace(iteration, self.place.phase + 1, row)
        else:
            self.files.add_to_curve({"iteration": iteration, **row})
            self.place = RunPlace(iteration + 1)
        near = self._deadline.is_near(self.saved_modules)
        if near or self._due():
            self._save()
        self._report_progress()
        if near:
            raise OutOfTimeError(f"after {iteration} iterations and `{phase}`")

    async def _do(self, phase: str, iteration: int) -> dict[str, Any]:
        if phase == MARK:
            return await self._mark()
        if phase == COLLECT and self.acting is not None:
            return await self._collect(self.acting, iteration)
        if phase == ACTOR and iteration < self.schedule.warmup:
            return {}
        return {phase: self.learner.learn(phase, iteration, self.buffer)}

    async def _collect(self, acting: Acting, iteration: int) -> dict[str, Any]:
        journal = self.files.played
        attempts = attempts_of(
            acting.tasks, acting.draw, acting.seed, iteration, acting.episodes, acting.group
        )
        await self._play(
            acting.stage,
            acting.policy,
            [each for each in attempts if (iteration, each.number) not in journal.finished],
            lambda row: journal.append({**row, "iteration": iteration}),
        )
        rows = self.files.episodes_of(iteration)
        self.buffer.add([*map(episode_of_row, rows)])
        before = self.files.last
        return {
            "trajectories": before.get("trajectories", 0) + len(rows),
            "steps": before.get("steps", 0) + sum(row["turns"] for row in rows),
            "reply_tokens": before.get("reply_tokens", 0)
            + sum(row["tokens"]["completion"] for row in rows),
            "return": _spread([float(row["reward"]) for row in rows]),
            "success": statistics.fmean(row["success"] for row in rows),
            "turns": statistics.fmean(row["turns"] for row in rows),
            "invalid": sum(row["invalid"] for row in rows),
            "buffer": len(self.buffer),
        }

    async def _mark(self) -> dict[str, Any]:
        """Write and evaluate the policy, where that is due."""
        iteration, schedule = self.place.iteration, self.schedule
        if iteration in schedule.keep:
            self.keep_policy(self.folder / OWN / str(iteration))
        acting = self.acting
        if acting is None or acting.evaluation is None or acting.evaluated is None:
            return {}
        evaluation = acting.evaluation
        if iteration != schedule.iterations and iteration % evaluation.when.every:
            return {}
        journal = self.files.evaluated
        attempts = task_attempts(
            evaluation.tasks,
            evaluation.when.attempts,
            seed=evaluation.when.seed,
            prompt_seed=0,
            prompt_per_attempt=True,
        )
        await self._play(
            acting.stage.on(evaluation.when.split),
            acting.evaluated,
            [
                each
                for each in attempts
                if (iteration, each.task_id, each.number) not in journal.finished
            ],
            lambda row: journal.append({**without_turns(row), "iteration": iteration}),
        )
        rows = journal.rows([(iteration, each.task_id, each.number) for each in attempts])
        return {
            "evaluation": {
                **_spread([float(row["reward"]) for row in rows]),
                "success": statistics.fmean(row["success"] for row in rows),
            }
        }

    async def _play(
        self,
        stage: ActingStage,
        policy: LivePolicy,
        attempts: Sequence[Attempt],
        finished: Callable[[dict[str, Any]], None],
    ) -> None:
        if attempts:
            await play_all(stage, policy, attempts, finished, reserve=self.save_seconds())

    @property
    def saved_modules(self) -> nn.ModuleList:
        """The networks that a save writes: the policy, and a critic where there is one."""
        return nn.ModuleList(self.learner.modules.values())

    def save_seconds(self) -> float:
        """How long a save may take."""
        return self._deadline.save_seconds(self.saved_modules)

    def _due(self) -> bool:
        every = self.schedule.save_every
        if every is not None and self.place.phase:
            return False
        return self._deadline.save_due(self.saved_modules, self.place.iteration, every)

    def _save(self) -> None:
        if self.place == self._saved:
            return
        self._deadline.begin_step()  # an interrupted phase is not part of the save's duration
        save_state(self.folder, self.learner, self.place)
        self._saved = self.place
        self._deadline.saved()

    def _announce(self, phase: str) -> None:
        """Print where the run is: the log of a killed one shows it too."""
        print(f"iteration {self.place.iteration}: {phase}", flush=True)

    def _report_progress(self) -> None:
        returns: Mapping[str, Any] = {**self.files.last, **self.place.row}.get("return", {})
        reward = {"reward": round(returns["mean"], 4)} if returns else {}
        total = self.schedule.iterations
        self.job.progress(self.place.iteration, total, "iterations", **reward)


def attempts_of(
    tasks: Sequence[str],
    how: Literal["draw", "cycle"],
    seed: int,
    iteration: int,
    episodes: int,
    group: int = 1,
) -> list[Attempt]:
    """The episodes of an iteration, in groups of `group` with the same task and prompt. They are
    numbered over the run; a group's prompt seed is the number of its first episode."""
    first, groups = iteration * episodes, episodes // group
    if how == "draw":
        key = key_of(seed, "act", iteration)
        generator = numpy.random.Generator(numpy.random.Philox(key=key))
        drawn = generator.integers(0, len(tasks), groups).tolist()
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


async def play_all(
    stage: ActingStage,
    policy: LivePolicy,
    attempts: Sequence[Attempt],
    finished: Callable[[Row], None],
    *,
    reserve: float = 0.0,
) -> None:
    """Play the attempts, and call `finished` with the row and turns of each as it ends. Raises what
    `run_episodes` does: OutOfTimeError `reserve` seconds before the limit."""
    left = stage.job.time_left()
    kind = stage.rules.reward_kind

    async def play_attempt(attempt: Attempt) -> Row:
        policy.turns.pop(attempt.id, None)  # of an attempt that a failing server ended
        row = await play(stage.rules, stage.turns, attempt, policy, stage.servers.world)
        return with_turns(row, policy.turns.pop(attempt.id, []), kind)

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
                play=play_attempt,
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


def _spread(numbers: Sequence[float]) -> dict[str, float]:
    """Mean, sample standard deviation, and number."""
    sd = statistics.stdev(numbers) if len(numbers) > 1 else 0.0
    return {"mean": statistics.fmean(numbers), "sd": sd, "n": len(numbers)}
