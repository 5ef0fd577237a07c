"""Curves of a report: evaluations over a lineage of checkpoints, returns of online RL by how much
was played, and what trainers logged by step. Lines that differ by their seeds only are one, with
the interval of their mean, or are drawn over each other (logs)."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from agentc.program.artifact_files import CURVE_FILE, METRICS_FILE
from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor, read_lines
from agentc_backends.results.report.drawings import PlotLine, both_charts
from agentc_backends.results.report.evaluation_tables import pooled_mean, seed_axes
from agentc_backends.statistics.intervals import t_quantile

_FROM = ("model", "run")
_MODELS = ("Checkpoint", "PolicyRun")


def learning_curves(collection: Collection) -> list[dict[str, Any]]:
    """One chart for each (environment, split) with two evaluations or more: lines that follow a
    lineage of checkpoints, each point an evaluation of one of them.

    A line ends at a checkpoint that no other evaluated one descends from, so that seeds and arms
    of a sweep give lines of their own, which share their beginnings.
    """
    evaluated: dict[str, dict[str, tuple[ExperimentJob, dict[str, Any]]]] = {}
    for node in collection.of_type("Metrics"):
        metrics = node.document(METRICS_FILE)
        policy = _policy(node, collection)
        if policy is not None:
            evaluated.setdefault(metrics["name"], {})[policy.object] = (node, metrics)
    charts = []
    for name, points in evaluated.items():
        lines = [line for line in _lines(points, collection) if len(line) > 1]
        if lines:
            charts.append({"name": name, "lines": lines})
    return charts


def _lines(
    points: dict[str, tuple[ExperimentJob, dict[str, Any]]], collection: Collection
) -> list[list[dict[str, Any]]]:
    chains = {policy: _chain(collection.by_object[policy], collection) for policy in points}
    inner = {ancestor.object for chain in chains.values() for ancestor in chain[:-1]}
    lines = []
    for policy, chain in chains.items():
        if policy in inner:
            continue
        line = []
        for step in chain:
            if step.object in points:
                node, metrics = points[step.object]
                line.append(
                    {
                        "label": step.name,
                        "evaluation": node.name,
                        "anchor": anchor(node),
                        "metrics": [metrics],
                        "reward": metrics["reward"],
                        "success": metrics["success"],
                    }
                )
        lines.append(line)
    return lines


def _chain(checkpoint: ExperimentJob, collection: Collection) -> list[ExperimentJob]:
    """The checkpoint with its ancestors, oldest first."""
    chain = [checkpoint]
    while True:
        parent = next(
            (
                collection.by_object[name]
                for role, name in chain[0].parents
                if role in _FROM and name in collection.by_object
            ),
            None,
        )
        if parent is None or parent.type not in _MODELS:
            return chain
        chain.insert(0, parent)


def _policy(metrics: ExperimentJob, collection: Collection) -> ExperimentJob | None:
    """The checkpoint whose episodes were measured."""
    for _, name in metrics.parents:
        rollout = collection.by_object.get(name)
        if rollout is None or rollout.type in _MODELS:
            continue
        for role, parent in rollout.parents:
            if role == "model" and parent in collection.by_object:
                return collection.by_object[parent]
    return None


def curve_charts(
    collection: Collection, experiment: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For each set of tasks: reward and success of the models in the order of their making. Lines
    of one experiment at several seeds are one, with the intervals of the sweep's table."""
    shown = []
    for chart in learning_curves(collection):
        lines = _over_seeds(chart["lines"], experiment or {})
        several = len(lines) > 1
        ticks = _stages_of(lines)
        # Where every reward is 0 or 1, success is the same curve again.
        same = all(_same(point) for line in lines for point in line)
        for score in ("reward",) if same else ("reward", "success"):
            drawn = [_curve(line, score) for line in lines]
            title = f"{score} on {chart['name']}"
            svg = both_charts(
                drawn,
                title=title,
                heights=(250, 280),
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


def _stages_of(lines: Sequence[Sequence[Mapping[str, Any]]]) -> list[tuple[float, str]]:
    """The names under the axis: of each place the stages that made its models, without the cells
    of a sweep."""
    found: list[tuple[float, str]] = []
    for place in range(max(map(len, lines))):
        names = dict.fromkeys(_stage(line[place]) for line in lines if place < len(line))
        first, *others = names
        more = f" / {others[0]}" if len(others) == 1 else f" + {len(others)}" if others else ""
        found.append((float(place), first + more))
    return found


def _stage(point: Mapping[str, Any]) -> str:
    return str(point["label"]).partition(" (")[0].partition("@")[0]


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
                "svg": both_charts(lines, title=title, heights=(216, 280), names=(label, "return")),
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
    return read_lines(node.folder / "data" / CURVE_FILE)


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


# Training logs: the rounds of one stage are joined on one axis.

_MOST_LOG_POINTS = 300
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
            lines = [_log_line(seed, each, starts, name) for seed, each in series.items()]
            lines = [line for line in lines if len(line.points) > 1]
            if not lines:
                continue
            title = f"{label} of {jobs[0].name} by step"
            svg = both_charts(
                lines, title=title, heights=(176, 240), names=("step", label), marks=marks
            )
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


def _log_line(
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
    if len(points) <= _MOST_LOG_POINTS:
        return points
    stride = len(points) / _MOST_LOG_POINTS
    return [*(points[int(i * stride)] for i in range(_MOST_LOG_POINTS - 1)), points[-1]]
