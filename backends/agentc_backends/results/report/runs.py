"""Curves of online RL: what episodes returned, by how much had been played.

Of runs that differ by their seeds alone one line is drawn, with the interval of their mean.
Neighbour: `charts.py` follows models from stage to stage.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob, read_lines
from agentc_backends.results.report.figures import PlotLine, line_chart
from agentc_backends.results.report.sweep import seed_axes
from agentc_backends.statistics.student import t_quantile

_BY = (
    ("trajectories", "trajectories"),
    ("steps", "steps of the environment"),
    ("reply_tokens", "tokens of replies"),
)
_MOST_POINTS = 40
"""Of a line with whiskers: more would run into each other."""
_SHARE = 0.975
"""The upper end of a 95 % interval."""

Curve = list[dict[str, Any]]


def run_charts(
    collection: Collection, experiment: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The return of the policies in training, one line a run (or a group of seeds); {"title",
    "svg", "legend"} each."""
    groups = _groups(collection, experiment or {})
    if not groups:
        return []
    shown = []
    for name, label in _BY:
        lines = [_line(title, curves, name) for title, curves in groups.items()]
        title = f"return while training, by {label}"
        shown.append(
            {
                "title": title,
                "svg": line_chart(lines, title=title, height=216, names=(label, "return")),
                "legend": [line.label for line in lines],
            }
        )
    return shown


def _groups(collection: Collection, experiment: Mapping[str, Any]) -> dict[str, list[Curve]]:
    """Curves by what they are called; those of seeds together."""
    cells: Mapping[str, Mapping[str, Any]] = experiment.get("cells") or {}
    seeds = seed_axes(experiment)
    found: dict[str, list[Curve]] = {}
    for node in collection.of_type("PolicyRun"):
        curve = _curve_of(node)
        # A run that learns from recorded episodes has no returns of its own.
        if len(curve) < 2 or "return" not in curve[0]:
            continue
        about = cells.get(node.name) or {"base": node.name, "cell": {}}
        cell = {axis: value for axis, value in about["cell"].items() if axis not in seeds}
        name = str(about["base"]) + (f" {json.dumps(cell, sort_keys=True)}" if cell else "")
        found.setdefault(name, []).append(curve)
    return found


def _curve_of(node: ExperimentJob) -> Curve:
    return read_lines(node.folder / "data" / "curve.jsonl")


def _line(name: str, curves: Sequence[Curve], by: str) -> PlotLine:
    """Of one run with the interval of its episodes' mean; of several that of the runs' mean."""
    length = min(map(len, curves))
    stride = max(1, math.ceil(length / _MOST_POINTS))
    points, intervals, hints = [], [], []
    for place in [*range(0, length - 1, stride), length - 1]:
        rows = [curve[place] for curve in curves]
        means = [float(row["return"]["mean"]) for row in rows]
        if len(rows) == 1:
            told = rows[0]["return"]
            spread, n = float(told["sd"]), int(told["n"])
        else:
            spread, n = statistics.stdev(means), len(means)
        mean = statistics.fmean(means)
        half = t_quantile(_SHARE, n - 1) * spread / math.sqrt(n) if n > 1 else 0.0
        points.append((statistics.fmean(float(row[by]) for row in rows), mean))
        intervals.append((mean - half, mean + half))
        hints.append(f"{name}, iteration {rows[0]['iteration']}: {mean:.3f}")
    label = name if len(curves) == 1 else f"{name} ({len(curves)} runs)"
    return PlotLine(label, points, intervals, hints, marked=True)
