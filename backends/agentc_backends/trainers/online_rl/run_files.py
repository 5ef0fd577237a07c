"""The rows of a run in its work folder: what was played, evaluated, and its curve.

Neighbours: `run_state.py` has the rest of what a run goes on from, `loop.py` writes both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.program.job import each_row, write_rows
from agentc_backends.agents.common.journal import Journal
from agentc_backends.trainers.online_rl.run_state import RunPlace

EPISODES, EVALUATIONS, CURVE = "episodes.jsonl", "evaluations.jsonl", "curve.jsonl"


class RunFiles:
    """`open` it at the place that the run goes on from: rows of what comes after are dropped, since
    on some machines they would not come out the same again. Those of the phase that comes next are
    kept: they are of the policy that plays it."""

    def __init__(self, folder: Path, episodes: int) -> None:
        self._folder, self._number = folder, episodes
        self._journals: dict[str, Journal] = {}
        self.first = 0
        """The first iteration of this run; there are earlier ones where it goes on from another."""
        self.last: Mapping[str, Any] = {}
        """The newest row of the curve, or of the one before it; {} before the first."""

    def open(self, place: RunPlace, first: int, before: Mapping[str, Any]) -> None:
        """To be called once. `first` is the run's first iteration, `before` the last row of the
        curve that it goes on from."""
        self.first = first
        iteration = place.iteration
        for name in (EPISODES, EVALUATIONS):
            _keep(self._folder / name, lambda row: row["iteration"] <= iteration)
        # A row of the curve is written when its iteration is over.
        _keep(self._folder / CURVE, lambda row: row["iteration"] < iteration)
        self._journals = {
            EPISODES: Journal(self._folder / EPISODES, ("iteration", "attempt")).__enter__(),
            EVALUATIONS: Journal(
                self._folder / EVALUATIONS, ("iteration", "task_id", "attempt")
            ).__enter__(),
        }

        curve = self.curve()
        self.last = curve[-1] if curve else before

    def close(self) -> None:
        """Nothing is written any more."""
        for journal in self._journals.values():
            journal.__exit__(None, None, None)

    @property
    def played(self) -> Journal:
        """Of training, one row an episode."""
        return self._journals[EPISODES]

    @property
    def evaluated(self) -> Journal:
        """Of evaluations."""
        return self._journals[EVALUATIONS]

    def episodes_of(self, iteration: int) -> Sequence[Mapping[str, Any]]:
        """The rows of an iteration, in their order."""
        first = iteration * self._number
        return self.played.rows([(iteration, first + number) for number in range(self._number)])

    def curve(self) -> list[dict[str, Any]]:
        """The rows so far."""
        path = self._folder / CURVE
        return list(each_row(path)) if path.exists() else []

    def add_to_curve(self, row: Mapping[str, Any]) -> None:
        """Of an iteration that is over."""
        self.last = row
        with (self._folder / CURVE).open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, sort_keys=True) + "\n")


def _keep(path: Path, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
    """Drop the other rows, and what was being written when the job was cut off."""
    if not path.exists():
        return
    whole = path.with_suffix(".tmp")
    write_rows(whole, (row for row in _whole_rows(path) if wanted(row)))
    whole.replace(path)


def _whole_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)
