"""RunFollower: what a run writes, while it writes it, as points and results for a tracker's sink.

Points come from lines of `logs/steps.jsonl` of trainers and `curve.jsonl` of online RL; results
from published Metrics, Comparison and Verdicts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from agentc.program.artifact_files import COMPARISON_FILE, METRICS_FILE, VERDICTS_FILE
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.tracking.sink import HeldSteps, Names, TrackedRun, TrackerSink

_STEP = ("step", "iteration")
"""What counts, in the order of preference: a line has one of them."""
_UNSAFE = re.compile(r"[^\w\-. /]")
"""What the narrowest of the trackers (MLflow) has in no name of a metric."""
_OF_THE_CLOCK = ("_per_s", "_seconds")


class Point(NamedTuple):
    """The numbers of one step, by name; those of nested objects as `return/mean`."""

    step: int
    numbers: dict[str, float]


def read_point(line: bytes) -> Point | None:
    """The point of a line; None where it is no object of JSON, or counts nothing."""
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None  # it was being written when the job was cut off
    if not isinstance(row, dict):
        return None
    counted = next((name for name in _STEP if _is_count(row.get(name))), None)
    if counted is None:
        return None
    numbers = {name: value for name, value in flat_numbers(row) if name != counted}
    return Point(int(row[counted]), numbers)


def metric_name(text: str) -> str:
    """The same in every tracker: `evaluate@seed=0/reward` is `evaluate_seed_0/reward`."""
    return _UNSAFE.sub("_", text)


def flat_numbers(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of an object, NaN and infinite ones too; texts, lists and null are left out."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from flat_numbers(inner, f"{before}{name}/")
        elif isinstance(inner, (int, float)) and not isinstance(inner, bool):
            yield before + str(name), float(inner)


def fingerprint(point: Point) -> int:
    """Differs where a step came out otherwise when it was made again: speeds and times always do,
    and are left out."""
    kept = sorted(
        (name, repr(value))
        for name, value in point.numbers.items()
        if not name.endswith(_OF_THE_CLOCK) and not name.startswith("seconds/")
    )
    return hash(tuple(kept))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class Tail:
    """Reads whole lines only: what follows the last newline is being written."""

    def __init__(self) -> None:
        self._offset = 0
        self._last = b""

    def read(self, path: Path) -> list[bytes]:
        """The lines since the last call, of the file where it lies now. All of them again, where
        what was read is no longer there: a resumed job has dropped the lines that it repeats.
        None of a file that is not there, or cannot be read at this moment."""
        try:
            with path.open("rb") as file:
                if not self._goes_on(file):
                    self._offset, self._last = 0, b""
                file.seek(self._offset)
                new = file.read()
        except OSError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        if not whole:
            return []
        lines = whole.splitlines(keepends=True)
        self._offset += len(whole)
        self._last = lines[-1]
        return lines

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the last line that was read still ends where it ended."""
        file.seek(self._offset - len(self._last))
        return file.read(len(self._last)) == self._last


FILES = {"Metrics": METRICS_FILE, "Comparison": COMPARISON_FILE, "Verdicts": VERDICTS_FILE}
"""The types of artifacts with results, and the file that holds them."""

_SCORES = ("reward", "success")
_INTERVAL = ("mean", "low", "high")
_COUNTS = ("n_tasks", "n_error")


def evaluation_numbers(series: str, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Of metrics.json: `<series>/reward` is the mean, beside it the ends of its interval."""
    found = dict(_scores(series, metrics))
    for name in _COUNTS:
        if isinstance(metrics.get(name), int):
            found[f"{series}/{name}"] = float(metrics[name])
    return found


def comparison_numbers(comparison: Mapping[str, Any]) -> dict[str, float]:
    """Of comparison.json: each evaluation's difference from the baseline, with its interval."""
    found: dict[str, float] = {}
    for row in comparison.get("rows") or ():
        for score, key in (("reward", "difference"), ("success", "success_difference")):
            what = f"{row['name']}/{score} less {comparison.get('baseline')}"
            found.update(_interval(what, row.get(key)))
    return found


def verdict_numbers(verdicts: Mapping[str, Any]) -> dict[str, float]:
    """Of claims.json: what was observed for each claim, with its interval."""
    found: dict[str, float] = {}
    for claim in verdicts.get("claims") or ():
        observed = claim.get("difference") or claim.get("observed")
        found.update(_interval(f"claims/{claim['name']}", observed))
    return found


def verdict_words(verdicts: Mapping[str, Any]) -> dict[str, str]:
    """The verdict on each claim, by its name."""
    return {str(claim["name"]): str(claim["verdict"]) for claim in verdicts.get("claims") or ()}


def verdict_text(verdicts: Mapping[str, Any]) -> str:
    """The same as a table in Markdown, with the reasons."""
    lines: list[str] = ["| claim | what | verdict | because |", "|---|---|---|---|"]
    for claim in verdicts.get("claims") or ():
        cells = (claim["name"], claim.get("what"), claim["verdict"], claim.get("because"))
        lines.append(f"| {' | '.join(_cell(each) for each in cells)} |")
    return "\n".join(lines)


def _scores(series: str, metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for score in _SCORES:
        yield from _interval(f"{series}/{score}", metrics.get(score)).items()


def _interval(name: str, value: Mapping[str, Any] | None) -> dict[str, float]:
    """`name` for the mean, `name_low` and `name_high`; nothing of what was not measured. No name is
    a folder of another: MLflow's files could not hold both."""
    if not isinstance(value, dict):
        return {}
    return {
        name if part == "mean" else f"{name}_{part}": float(value[part])
        for part in _INTERVAL
        if isinstance(value.get(part), (int, float))
    }


def _cell(value: Any) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


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
        report: Callable[[str], None],
    ) -> None:
        self._layout, self._names, self._sink, self._say = layout, names, sink, report
        # Equal work stands in a plan several times, and is made once.
        jobs = {f"{job['kind']}/{job['key']}": job for job in reversed(document["jobs"])}
        self._open: dict[str, Job] = dict(reversed(list(jobs.items())))
        self._curves: dict[str, _Curve] = {}
        found = [name for name, job in self._open.items() if job["produces"] in FILES]
        self._results = names.of_results(found) if found else None
        self._of_results = set(found)
        self._held: HeldSteps | None = None
        self.points = 0
        """How many values were handed over."""

    def observe(self) -> None:
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
            self._send_verdicts(name, job)

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

    def _send_verdicts(self, name: str, job: Job) -> None:
        """Evaluations are counted by their rounds: those of one stage are a curve, too."""
        value = _json(self._layout.data(name) / FILES[job["produces"]])
        if value is None or self._results is None:
            return
        if self._held is None:
            self._held = self._sink.open(self._results)
        series = self._names.series(job["stage"], job.get("round"))
        if job["produces"] == "Metrics":
            numbers = evaluation_numbers(series, value)
        elif job["produces"] == "Comparison":
            numbers = comparison_numbers(value)
        else:
            numbers = verdict_numbers(value)
            words = verdict_words(value)
            self._sink.send_text(self._results, series, verdict_text(value), words)
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
