"""One table over a sweep: evaluations pooled over seeds, a row for each other cell.

Differences are paired by seed and task. What one seed and many tasks, or many seeds, say of the
mean is what `agentc_backends.statistics` says of claims and comparisons too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentc_backends.agents.evaluate.attempts import best_of_rows
from agentc_backends.results.report.collect import Collection
from agentc_backends.results.report.tables import mean_score, scale_of
from agentc_backends.statistics.described import described, described_difference, holm
from agentc_backends.statistics.scores import (
    Metrics,
    Run,
    bounds_of,
    bounds_of_difference,
    read_scores,
)

CONFIDENCE = 0.95
_SCORE = "reward"


@dataclass
class _Row:
    """Evaluations of one stage at one cell, by the values of the seed axes."""

    stage: str
    cell: dict[str, Any]
    runs: dict[str, Metrics] = field(default_factory=dict)


def seed_axes(experiment: Mapping[str, Any]) -> tuple[str, ...]:
    """The axes of the matrix whose values are runs of one experiment."""
    matrix: Mapping[str, Sequence[Any]] = experiment.get("matrix") or {}
    return tuple(axis for axis in matrix if axis == "seed" or axis.endswith("_seed"))


def sweep_tables(collection: Collection, experiment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table for each set of tasks that evaluations were made on; none without a matrix."""
    matrix: Mapping[str, Sequence[Any]] = experiment.get("matrix") or {}
    if not matrix:
        return []
    seeds = seed_axes(experiment)
    others = tuple(axis for axis in matrix if axis not in seeds)
    cells: Mapping[str, Mapping[str, Any]] = experiment.get("cells") or {}
    groups: dict[str, dict[tuple[str, str], _Row]] = {}
    for node in collection.of_type("Metrics"):
        metrics = node.document("metrics.json")
        about = cells.get(node.name) or {"base": node.name, "cell": {}}
        cell = dict(about["cell"])
        apart = {axis: cell.pop(axis) for axis in seeds if axis in cell}
        base, seed = str(about["base"]), json.dumps(apart, sort_keys=True)
        rows = groups.setdefault(str(metrics["name"]), {})
        # One that took the best of several attempts has a row for that as well.
        for name, scored in ((base, metrics), *best_of_rows(base, metrics)):
            place = (name, json.dumps(cell, sort_keys=True))
            rows.setdefault(place, _Row(name, cell)).runs[seed] = scored
    baseline = _baseline(collection, cells)
    return [_table(on, rows, others, seeds, baseline) for on, rows in groups.items()]


def pooled_mean(
    runs: Sequence[Metrics], score: str, confidence: float = CONFIDENCE
) -> dict[str, Any] | None:
    """Mean over seeds and tasks with its interval; None without a task that all runs have."""
    scores = read_scores([(run, None) for run in runs], score)
    if not scores.tasks:
        return None
    return described(scores.estimate(bounds_of(runs[0], score)), confidence)


def _table(
    on: str,
    rows: Mapping[tuple[str, str], _Row],
    others: Sequence[str],
    seeds: Sequence[str],
    baseline: str | None,
) -> dict[str, Any]:
    shown = []
    for (stage, cell), row in rows.items():
        base = rows.get((baseline, cell)) or rows.get((baseline, "{}")) if baseline else None
        means = [mean_score(run, _SCORE) for run in row.runs.values()]
        shown.append(
            {
                "stage": stage,
                "cell": [row.cell.get(axis, "all") for axis in others],
                "runs": len(row.runs),
                "reward": pooled_mean(list(row.runs.values()), _SCORE),
                "difference": None if base is None or base is row else _difference(row, base),
                "each": [mean for mean in means if mean is not None],
            }
        )
    apart = [row["difference"] for row in shown if isinstance(row["difference"], dict)]
    for difference, p in zip(apart, holm([d["p_value"] for d in apart]), strict=True):
        difference["p_holm"] = p
    reaches = [abs(each[end]) for each in apart for end in ("low", "high")]
    rewards = [row["reward"] for row in shown if isinstance(row["reward"], dict)]
    return {
        "on": on,
        "others": list(others),
        "seeds": list(seeds),
        "baseline": baseline,
        "confidence": CONFIDENCE,
        "rows": shown,
        "scale": scale_of(rewards),
        "reach": max(reaches, default=1.0) or 1.0,
    }


def _difference(row: _Row, base: _Row) -> dict[str, Any] | None:
    """Paired by seed; an evaluation that does not depend on the seed stands for each of them."""
    pairs: list[Run] = []
    for seed, run in row.runs.items():
        other = base.runs.get(seed) or base.runs.get("{}")
        if other is not None:
            pairs.append((run, other))
    if "{}" in row.runs and not pairs:
        pairs = [(row.runs["{}"], run) for run in base.runs.values()]
    scores = read_scores(pairs, _SCORE)
    if not scores.tasks:
        return None
    bounds = bounds_of_difference(bounds_of(pairs[0][0], _SCORE))
    return described_difference(scores, scores.estimate(bounds), CONFIDENCE)


def _baseline(collection: Collection, cells: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The stage that the comparisons of the sweep take as theirs, if they agree."""
    names = set()
    for node in collection.of_type("Comparison"):
        document = node.document("comparison.json")
        if "scores" in document:
            continue  # of revisions
        name = str(document["baseline"])
        names.add(str(cells.get(name, {"base": name})["base"]))
    return names.pop() if len(names) == 1 else None
