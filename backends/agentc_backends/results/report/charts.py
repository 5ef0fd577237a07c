"""Learning curves over a lineage of models. Neighbours: `training.py` draws logs, `runs.py` RL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.results.report.collect import Collection
from agentc_backends.results.report.figures import PlotLine, line_chart
from agentc_backends.results.report.lineage import learning_curves
from agentc_backends.results.report.sweep import pooled_mean, seed_axes


def curve_charts(
    collection: Collection, experiment: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For each set of tasks: reward and success of the models in the order of their making. Lines
    of one experiment at several seeds are one, with the intervals of the sweep's table."""
    shown = []
    for chart in learning_curves(collection):
        lines = _over_seeds(chart["lines"], experiment or {})
        several = len(lines) > 1
        longest = max(lines, key=len)
        shared = all([p["label"] for p in line] == [p["label"] for p in longest] for line in lines)
        ticks = [
            (float(i), point["label"] if shared or not several else f"model {i + 1}")
            for i, point in enumerate(longest)
        ]
        # Where every reward is 0 or 1, success is the same curve again.
        same = all(_same(point) for line in lines for point in line)
        for score in ("reward",) if same else ("reward", "success"):
            drawn = [_curve(line, score) for line in lines]
            title = f"{score}{', which is success,' if same else ''} on {chart['name']}"
            svg = line_chart(
                drawn,
                title=title,
                height=250,
                ticks=ticks,
                include=(0.0,),
                names=("model", score),
            )
            shown.append(
                {
                    "title": title,
                    "svg": svg,
                    "legend": [line.label for line in drawn] if several else [],
                }
            )
    return shown


def _over_seeds(
    lines: Sequence[list[dict[str, Any]]], experiment: Mapping[str, Any]
) -> list[list[dict[str, Any]]]:
    """Lines whose evaluations differ by their seeds alone, pooled point by point."""
    cells: Mapping[str, Mapping[str, Any]] = experiment.get("cells") or {}
    seeds = seed_axes(experiment)

    def place(point: Mapping[str, Any]) -> str:
        about = cells.get(point["evaluation"]) or {"base": point["evaluation"], "cell": {}}
        cell = {axis: value for axis, value in about["cell"].items() if axis not in seeds}
        return json.dumps([about["base"], cell], sort_keys=True)

    groups: dict[tuple[str, ...], list[list[dict[str, Any]]]] = {}
    for line in lines:
        groups.setdefault(tuple(map(place, line)), []).append(line)
    return [
        group[0] if len(group) == 1 else [_pooled(points) for points in zip(*group, strict=True)]
        for group in groups.values()
    ]


def _pooled(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One point of several seeds; what no seed changes, such as the untrained model, is one run."""
    runs = {point["evaluation"]: point["metrics"][0] for point in points}
    first, found = points[0], list(runs.values())
    if len(found) == 1:
        return first
    scores = {score: pooled_mean(found, score) or first[score] for score in ("reward", "success")}
    label = f"{first['label'].split('@')[0]} ({len(found)} runs)"
    return {**first, **scores, "label": label, "metrics": found}


def _same(point: Mapping[str, Any]) -> bool:
    reward, success = point["reward"], point["success"]
    return all(reward[part] == success[part] for part in ("mean", "low", "high"))


def _curve(line: list[dict[str, Any]], score: str) -> PlotLine:
    means = [(float(i), float(point[score]["mean"])) for i, point in enumerate(line)]
    intervals = [(point[score]["low"], point[score]["high"]) for point in line]
    hints = [
        f"{point['label']} ({point['evaluation']}): {point[score]['mean']:.3f}" for point in line
    ]
    return PlotLine(line[-1]["label"], means, intervals, hints, marked=True)
