"""RunFollower: looks at the jobs of a plan again and again, and hands what is new to a sink.

What a job has written so far is read where it is staged, what is finished where it is published;
so a run on another node, and one that was over long ago, are followed in the same way. Nothing is
ever written into the store. Neighbours: `tail.py`, `names.py`, `results.py`; `program.py` calls it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.tracking import results
from agentc.runtime.tracking.names import Names
from agentc.runtime.tracking.points import Point, fingerprint, metric_name, read_point
from agentc.runtime.tracking.sink import HeldSteps, TrackedRun, TrackerSink
from agentc.runtime.tracking.tail import Tail

Job = Mapping[str, Any]

_STAGED = ("logs/steps.jsonl", "work/curve.jsonl")
_PUBLISHED = ("logs/steps.jsonl", "data/curve.jsonl")


class RunFollower:
    """`say` receives a sentence for people now and then."""

    def __init__(
        self,
        layout: StoreLayout,
        document: Mapping[str, Any],
        names: Names,
        sink: TrackerSink,
        say: Callable[[str], None],
    ) -> None:
        self._layout, self._names, self._sink, self._say = layout, names, sink, say
        # Equal work stands in a plan several times, and is made once.
        jobs = {f"{job['kind']}/{job['key']}": job for job in reversed(document["jobs"])}
        self._open: dict[str, Job] = dict(reversed(list(jobs.items())))
        self._curves: dict[str, _Curve] = {}
        found = [name for name, job in self._open.items() if job["produces"] in results.FILES]
        self._results = names.of_results(found) if found else None
        self._of_results = set(found)
        self._held: HeldSteps | None = None
        self.points = 0
        """How many values were handed over."""

    def look(self) -> None:
        """Hand over what is new."""
        staged = self._staged()
        for name, job in list(self._open.items()):
            if self._layout.is_published(name):
                del self._open[name]
                self._published(name, job)
            elif name in staged:
                self._read(name, job, self._layout.staging(name), _STAGED)
        if self._results is not None and self._held is not None and not self._of_results:
            self._sink.finish(self._results)
            self._results = None

    def _published(self, name: str, job: Job) -> None:
        self._read(name, job, self._layout.object(name), _PUBLISHED)
        curve = self._curves.pop(name, None)
        if curve is not None:
            self._sink.finish(curve.run)
            if curve.remade:
                self._say(
                    "%s: %d steps from %d on were made again after a resume and came out otherwise;"
                    " here they are as they were first"
                    % (job["id"], len(curve.remade), min(curve.remade))
                )
        if name in self._of_results:
            self._of_results.discard(name)
            self._tell(name, job)

    def _read(self, name: str, job: Job, folder: Path, files: Any) -> None:
        curve = self._curves.get(name)
        for number, file in enumerate(files):
            tail = Tail() if curve is None else curve.tails[number]
            lines = tail.read(folder / file)
            if not lines:
                continue
            if curve is None:
                run = self._names.of_job(job)
                curve = self._curves[name] = _Curve(run, self._sink.open(run), len(files))
                curve.tails[number] = tail
            for line in lines:
                point = read_point(line)
                if point is not None:
                    self._log(curve.run, point.step, curve.new(point))

    def _tell(self, name: str, job: Job) -> None:
        """Evaluations are counted by their rounds: those of one stage are a curve, too."""
        value = _json(self._layout.data(name) / results.FILES[job["produces"]])
        if value is None or self._results is None:
            return
        if self._held is None:
            self._held = self._sink.open(self._results)
        series = self._names.series(job["stage"], job.get("round"))
        if job["produces"] == "Metrics":
            numbers = results.evaluation_numbers(series, value)
        elif job["produces"] == "Comparison":
            numbers = results.comparison_numbers(value)
        else:
            numbers = results.verdict_numbers(value)
            words = results.verdict_words(value)
            self._sink.tell(self._results, series, results.verdict_text(value), words)
        step = int(job.get("round") or 0)
        self._log(self._results, step, _missing(self._held, Point(step, numbers)))

    def _log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        if numbers:
            self._sink.log(run, step, numbers)
            self.points += len(numbers)

    def _staged(self) -> set[str]:
        """Objects that somebody works on or has begun: a listing for each kind."""
        found: set[str] = set()
        for kind in {name.partition("/")[0] for name in self._open}:
            with suppress(OSError):
                folders = (self._layout.root / "staging" / kind).iterdir()
                found.update(f"{kind}/{folder.name}" for folder in folders)
        return found


class _Curve:
    """A job's curve on its way to the sink. `remade` are the steps that a resumed job made again
    and that came out otherwise than what the tracker has."""

    def __init__(self, run: TrackedRun, held: HeldSteps, files: int) -> None:
        self.run = run
        self.tails: list[Tail] = [Tail() for _ in range(files)]
        self.remade: set[int] = set()
        self._held = held
        self._seen: dict[int, int] = {}

    def new(self, point: Point) -> dict[str, float]:
        """The numbers of a point that the tracker does not have."""
        made = fingerprint(point)
        if self._seen.setdefault(point.step, made) != made:
            self.remade.add(point.step)
        return _missing(self._held, point)


def _missing(held: HeldSteps, point: Point) -> dict[str, float]:
    """What the tracker lacks of a point; from now on it has that."""
    found = {}
    for text, value in point.numbers.items():
        name = metric_name(text)
        steps = held.setdefault(name, set())
        if point.step not in steps:
            steps.add(point.step)
            found[name] = value
    return found


def _json(path: Path) -> Mapping[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
