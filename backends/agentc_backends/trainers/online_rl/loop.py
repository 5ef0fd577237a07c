"""The loop of RL: evaluate, play, learn, again and again, from wherever it was cut off; of offline
RL, which has all its episodes before it begins, only to learn.

Each phase is a function of the state before it and of the run's seed, so a run that was killed
anywhere ends with the same weights (on one kind of CPU). Neighbours: `collecting.py` plays,
`learner.py` is what learns, `run_state.py` and `run_files.py` keep what a run goes on from.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from agentc.program.job import Job
from agentc_backends.agents.common.episode import Attempt
from agentc_backends.agents.common.failures import OutOfTimeError
from agentc_backends.agents.common.tasks import attempts_at
from agentc_backends.trainers.common.deadline import Deadline
from agentc_backends.trainers.online_rl.acting import LivePolicy
from agentc_backends.trainers.online_rl.collecting import ActingStage, attempts_of, play_all
from agentc_backends.trainers.online_rl.learner import ACTOR, Learner
from agentc_backends.trainers.online_rl.played import played_of, without_turns
from agentc_backends.trainers.online_rl.publishing import OWN
from agentc_backends.trainers.online_rl.replay import ReplayBuffer
from agentc_backends.trainers.online_rl.run_files import RunFiles
from agentc_backends.trainers.online_rl.run_state import RunPlace, load_state, save_state

MARK, COLLECT = "mark", "collect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """When the policy is evaluated within the run, on which tasks."""

    split: str
    tasks: Sequence[str]
    every: int
    attempts: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSchedule:
    """Until which iteration the run goes. `keep` are the iterations whose policies are kept,
    `save_every` is in iterations."""

    iterations: int
    warmup: int
    keep: Sequence[int]
    save_every: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """What a run plays, where and as whom: in each iteration so many episodes on tasks of `tasks`,
    each of them `group` times side by side; `evaluated` is the policy of its evaluations, where
    there are some."""

    stage: ActingStage
    policy: LivePolicy
    tasks: Sequence[str]
    draw: Any
    episodes: int
    seed: int
    group: int = 1
    evaluated: LivePolicy | None = None
    evaluation: Evaluation | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a run begins: at the first iteration, or behind the `played` rows of each one of the
    run that it goes on from, whose curve ends with the row `last`. A run that plays nothing begins
    behind all that it learns from."""

    iteration: int = 0
    played: Iterable[Sequence[Mapping[str, Any]]] = ()
    last: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Run:
    """One run; without `acting` it plays nothing. `begun` is where the run ended that this one goes
    on from, and what was played before; `keep_policy` writes the policy as it is now into a
    folder."""

    job: Job
    schedule: RunSchedule
    acting: Acting | None
    learner: Learner
    buffer: ReplayBuffer
    files: RunFiles
    folder: Path
    keep_policy: Callable[[Path], None]
    begun: Beginning
    place: RunPlace = field(default_factory=RunPlace)
    _deadline: Deadline = field(init=False)
    _saved: RunPlace | None = None

    async def go(self) -> None:
        """To the end. Raises OutOfTimeError with the state saved."""
        begun = self.begun
        found = load_state(self.folder, self.learner)
        self.place = self._saved = found or RunPlace(begun.iteration)
        self.files.open(self.place, begun.iteration, begun.last)
        self._deadline = Deadline(self.job)
        self._deadline.begin_step()
        for rows in begun.played:
            self.buffer.add([*map(played_of, rows)])
        if self.acting is not None:
            resumed_at = self.phases.index(COLLECT) < self.place.phase
            for iteration in range(begun.iteration, self.place.iteration + resumed_at):
                self.buffer.add([*map(played_of, self.files.episodes_of(iteration))])
        self.job.done_before(self.place.iteration)
        self._show()
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
        """Of an iteration."""
        played = () if self.acting is None else (COLLECT,)
        return (MARK, *played, *self.learner.phases)

    async def _step(self, phase: str) -> None:
        iteration, row = self.place.iteration, dict(self.place.row)
        self._announce(phase)
        began = time.monotonic()
        try:
            found = await self._do(phase, iteration)
        except OutOfTimeError:
            self._save()
            raise
        row |= found
        row["seconds"] = {**row.get("seconds", {}), phase: round(time.monotonic() - began, 3)}
        if self.place.phase + 1 < len(self.phases):
            self.place = RunPlace(iteration, self.place.phase + 1, row)
        else:
            self.files.add_to_curve({"iteration": iteration, **row})
            self.place = RunPlace(iteration + 1)
        near = self._deadline.is_near(self.saved_modules)
        if near or self._due():
            self._save()
        self._show()
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
            [one for one in attempts if (iteration, one.number) not in journal.finished],
            lambda row: journal.append({**row, "iteration": iteration}),
        )
        rows = self.files.episodes_of(iteration)
        self.buffer.add([*map(played_of, rows)])
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
        """Keep and evaluate the policy, where that is due."""
        iteration, schedule = self.place.iteration, self.schedule
        if iteration in schedule.keep:
            self.keep_policy(self.folder / OWN / str(iteration))
        acting = self.acting
        if acting is None or acting.evaluation is None or acting.evaluated is None:
            return {}
        asked = acting.evaluation
        if iteration != schedule.iterations and iteration % asked.every:
            return {}
        journal = self.files.evaluated
        attempts = attempts_at(
            asked.tasks, asked.attempts, seed=asked.seed, prompt_seed=0, prompt_per_attempt=True
        )
        await self._play(
            acting.stage.on(asked.split),
            acting.evaluated,
            [
                one
                for one in attempts
                if (iteration, one.task_id, one.number) not in journal.finished
            ],
            lambda row: journal.append({**without_turns(row), "iteration": iteration}),
        )
        rows = journal.rows([(iteration, one.task_id, one.number) for one in attempts])
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
        """What a save writes: the policy, and a critic where there is one."""
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
        self._deadline.begin_step()  # a phase that was cut off is no part of the save
        save_state(self.folder, self.learner, self.place)
        self._saved = self.place
        self._deadline.saved()

    def _announce(self, phase: str) -> None:
        """Where a run is, for whoever reads the log: also of one that was killed."""
        print(f"iteration {self.place.iteration}: {phase}", flush=True)

    def _show(self) -> None:
        returned: Mapping[str, Any] = {**self.files.last, **self.place.row}.get("return", {})
        reward = {"reward": round(returned["mean"], 4)} if returned else {}
        total = self.schedule.iterations
        self.job.progress(self.place.iteration, total, "iterations", **reward)


def _spread(numbers: Sequence[float]) -> dict[str, float]:
    """Mean, standard deviation of the sample, and how many."""
    sd = statistics.stdev(numbers) if len(numbers) > 1 else 0.0
    return {"mean": statistics.fmean(numbers), "sd": sd, "n": len(numbers)}
