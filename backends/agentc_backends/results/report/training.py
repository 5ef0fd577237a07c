"""Which training logs a report draws: what trainers logged, by step.

Rounds of one stage are joined on one axis, and seeds of one stage lie over each other.
Neighbour: `charts.py` follows models from stage to stage.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor
from agentc_backends.results.report.drawings import PlotLine, line_chart
from agentc_backends.results.report.evaluation_tables import seed_axes

_MOST_POINTS = 300
# What trainers log (trl's names), and what people call it.
_LOGGED = (
    ("loss", "loss"),
    ("rewards/accuracies", "preference accuracy"),
    ("rewards/margins", "reward margin"),
    ("grad_norm", "gradient norm"),
    ("lr", "learning rate"),
)

Series = dict[str, list[ExperimentJob]]
"""The jobs of one stage, its rounds in order, by the seed that they belong to."""


def training_charts(
    collection: Collection, experiment: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For each stage that trains `{"jobs", "legend", "charts": [{"label", "svg", "last"}]}`: the
    logged quantities that it has. `last` is None where there are several lines."""
    shown = []
    for series in _series(collection, experiment or {}):
        jobs = [job for each in series.values() for job in each]
        starts = _starts(series)
        marks = [(start, f"round {jobs[n].round}") for n, start in enumerate(starts) if n]
        charts = []
        for name, label in _LOGGED:
            lines = [_line(seed, each, starts, name) for seed, each in series.items()]
            lines = [line for line in lines if len(line.points) > 1]
            if not lines:
                continue
            title = f"{label} of {jobs[0].name} by step"
            svg = line_chart(lines, title=title, height=176, names=("step", label), marks=marks)
            last = lines[0].points[-1][1] if len(lines) == 1 else None
            charts.append({"label": label, "svg": svg, "last": last})
        if charts:
            shown.append(
                {
                    "jobs": [{"name": job.name, "anchor": anchor(job)} for job in jobs],
                    "legend": list(series) if len(series) > 1 else [],
                    "charts": charts,
                }
            )
    return shown


def _series(collection: Collection, experiment: Mapping[str, Any]) -> list[Series]:
    """Jobs with a log, those apart that differ by more than round and seed."""
    cells: Mapping[str, Mapping[str, Any]] = experiment.get("cells") or {}
    seeds = seed_axes(experiment)
    found: dict[str, Series] = {}
    for node in collection.nodes:
        if not node.steps:
            continue
        about = cells.get(node.name) or {"base": node.name, "cell": {}}
        cell = dict(about["cell"])
        seed = ", ".join(f"{axis}={cell.pop(axis)}" for axis in seeds if axis in cell)
        base = str(about["base"])
        if node.round is not None:
            base = base.replace(f".{node.round}.", ".*.", 1)
        place = json.dumps([base, cell], sort_keys=True)
        found.setdefault(place, {}).setdefault(seed or node.name, []).append(node)
    return [_by_round(series) for series in found.values()]


def _by_round(series: Series) -> Series:
    """Without a seed each round has come under its own name: they are one line."""
    if all(len(jobs) == 1 for jobs in series.values()):
        jobs = [each for [each] in series.values()]
        numbers = [job.round for job in jobs]
        if len(jobs) > 1 and None not in numbers and len(set(numbers)) == len(numbers):
            return {jobs[0].name: sorted(jobs, key=lambda job: job.round or 0)}
    return {seed: sorted(jobs, key=lambda job: job.round or 0) for seed, jobs in series.items()}


def _starts(series: Series) -> list[float]:
    """Where each round begins on the axis: after the longest of the rounds before it."""
    longest = max(len(jobs) for jobs in series.values())
    starts = [0.0]
    for number in range(longest - 1):
        ends = [
            float(row["step"])
            for jobs in series.values()
            for row in (jobs[number].steps[-1:] if number < len(jobs) else [])
            if isinstance(row.get("step"), (int, float))
        ]
        starts.append(starts[-1] + max(ends, default=0.0))
    return starts


def _line(
    label: str, jobs: Sequence[ExperimentJob], starts: Sequence[float], name: str
) -> PlotLine:
    points = [
        (start + x, y)
        for job, start in zip(jobs, starts, strict=False)
        for x, y in _points(job, name)
    ]
    return PlotLine(label, _thinned(points))


def _points(node: ExperimentJob, name: str) -> list[tuple[float, float]]:
    return [
        (float(row["step"]), float(row[name]))
        for row in node.steps
        if isinstance(row.get("step"), (int, float))
        and isinstance(row.get(name), (int, float))
        and math.isfinite(row[name])
    ]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most 300 points; the last one stays."""
    if len(points) <= _MOST_POINTS:
        return points
    stride = len(points) / _MOST_POINTS
    return [*(points[int(i * stride)] for i in range(_MOST_POINTS - 1)), points[-1]]
