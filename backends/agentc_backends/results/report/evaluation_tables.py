"""Tables of a report about evaluations: scores, comparisons, sweeps, claims. No markup.

Sweeps pool evaluations over seeds, a row for each other cell; differences are paired by seed and
task. Their statistics are those of claims and comparisons, `agentc_backends.statistics`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from agentc.program.artifact_files import COMPARISON_FILE, METRICS_FILE, VERDICTS_FILE
from agentc.runtime.health import verdict_words
from agentc_backends.agents.evaluate.episode_scores import best_of_rows
from agentc_backends.results.report.collect import Collection, anchor
from agentc_backends.statistics.scores import (
    Metrics,
    Run,
    bounds_of,
    bounds_of_difference,
    describe,
    describe_difference,
    holm,
    read_scores,
)


def evaluations(collection: Collection) -> list[dict[str, Any]]:
    """One table for each (environment, split), with one row for each evaluation on it."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for node in collection.of_type("Metrics"):
        metrics = node.document(METRICS_FILE)
        asked = metrics.get("asked", {})
        scores = [(node.name, metrics["reward"], metrics["success"])]
        for k in metrics.get("best_of", ()):
            best = f"{node.name}, best of {k}"
            scores.append((best, asked[f"best_of({k})"], asked[f"pass_at({k})"]))
        tables.setdefault(metrics["name"], []).extend(
            {
                "name": name,
                "anchor": anchor(node),
                "n": metrics["n"],
                "n_tasks": metrics.get("n_tasks", len(metrics["tasks"])),
                "n_error": metrics["n_error"],
                "reward": reward,
                "success": success,
                # Scores that a script gave have neither.
                "turns": metrics.get("turns", {}).get("mean"),
                "invalid": metrics.get("invalid_share"),
                "loops": asked.get("loops"),
                "repeats": metrics.get("repeats"),
            }
            for name, reward, success in scores
        )
    return [
        {
            "on": on,
            "rows": rows,
            "scale": scale_of(row["reward"] for row in rows),
            "loops": any(row["loops"] for row in rows),
            "same": all(is_same(row["reward"], row["success"]) for row in rows),
        }
        for on, rows in tables.items()
    ]


def comparisons(collection: Collection) -> list[dict[str, Any]]:
    """The comparison.json of each comparison, with the scales of its marks."""
    found = []
    for node in collection.of_type("Comparison"):
        document = node.document(COMPARISON_FILE)
        rows = document["rows"]
        # Of revisions other scores stand in place of these.
        scores = document.get("scores", ["reward", "success"])
        reach = max(
            (abs(d[k]) for row in rows if (d := row["difference"]) for k in ("low", "high")),
            default=1.0,
        )
        found.append(
            {
                "name": node.name,
                "anchor": anchor(node),
                **document,
                "scores": scores,
                "graded": "scores" not in document,
                "same": all(is_same(*(row.get(score) for score in scores)) for row in rows),
                "scale": scale_of(row[scores[0]] for row in rows),
                "reach": reach or 1.0,
                "loops": any("loops" in row for row in rows),
                "wins": any("wins" in row for row in rows),
            }
        )
    return found


def is_same(reward: Mapping[str, Any] | None, success: Mapping[str, Any] | None) -> bool:
    """Whether success is the reward again, as where every reward is 0 or 1."""
    ends = ("mean", "low", "high")
    return (
        False if not reward or not success else all(reward.get(e) == success.get(e) for e in ends)
    )


def mean_score(metrics: Mapping[str, Any], score: str) -> float | None:
    """Over the tasks that have one."""
    found = [task[score] for task in metrics["tasks"].values() if task.get(score) is not None]
    return fmean(found) if found else None


def scale_of(intervals: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """From 0 or below to 1 or above: enough for every interval."""
    ends = [i[k] for i in intervals for k in ("low", "high") if i[k] is not None]
    return min([0.0, *ends]), max([1.0, *ends])


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
        metrics = node.document(METRICS_FILE)
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
    return describe(scores.estimate(bounds_of(runs[0], score)), confidence)


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
    return describe_difference(scores, scores.estimate(bounds), CONFIDENCE)


def _baseline(collection: Collection, cells: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The stage that the comparisons of the sweep take as theirs, if they agree."""
    names = set()
    for node in collection.of_type("Comparison"):
        document = node.document(COMPARISON_FILE)
        if "scores" in document:
            continue  # of revisions
        name = str(document["baseline"])
        names.add(str(cells.get(name, {"base": name})["base"]))
    return names.pop() if len(names) == 1 else None


_CLASSES = {
    **dict.fromkeys(("reproduced", "supported"), "good"),
    **dict.fromkeys(("not reproduced", "contradicted"), "bad"),
    "inconclusive": "open",
}
_MARGIN = 0.06
"""Room beside the outermost mark, as a share of the scale."""


def claim_tables(collection: Collection) -> list[dict[str, Any]]:
    """The claims.json of each verdicts stage, each claim with what its row shows."""
    found = []
    for node in collection.of_type("Verdicts"):
        document = node.document(VERDICTS_FILE)
        rows = [_claim_row(claim) for claim in document["claims"]]
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
        found.append(
            {
                "name": node.name,
                "anchor": anchor(node),
                "rows": rows,
                "counts": [(word, counts[word], _CLASSES.get(word, "none")) for word in counts],
                "confidence": document["confidence"],
                "scale": document.get("scale"),
                # A hypothesis of one's own has no paper.
                "printed": any(r["relation"] == "value" or r["table"] for r in rows),
            }
        )
    return found


def _claim_row(claim: Mapping[str, Any]) -> dict[str, Any]:
    factor, digits = (100.0, 1) if claim["percent"] else (1.0, 3)
    paper, observed, band = claim["paper"], claim["observed"], claim["band"]
    value = claim["value"]
    ends = [value, *(band or ())]
    ends += [each[k] for each in (paper, observed) if each for k in ("low", "mean", "high")]
    ends = [end for end in ends if end is not None]
    reach = (max(ends) - min(ends)) * _MARGIN or 0.05
    verdict = verdict_words(claim["verdict"], observed or {})
    measured = claim["stage"]
    if claim["difference_from"] is not None:
        other = claim.get("difference_metric")
        over = " over " if claim["metric"] == "win_rate" else " − "
        measured += over + (f"{other} of " if other else "") + claim["difference_from"]
    if claim.get("reach") is not None:
        measured = measured.replace(" − ", " / ") + f", return of {claim['reach']:g}"
    if observed and "bound" in observed:
        observed = _of_a_curve(observed, max(ends) + reach)
        digits = 0 if claim["difference_from"] is None else 3
    return {
        "name": claim["name"],
        "what": claim["what"],
        "table": claim["table"],
        "measured": f"{claim['metric']} of {measured}",
        "verdict": verdict,
        "class": _CLASSES.get(verdict, "none"),
        "gate": claim["gate"],
        "because": claim["because"],
        "relation": claim["relation"],
        "seeds": claim["seeds"],
        "n": claim["n"],
        "value": value,
        "paper": paper,
        "observed": observed,
        "band": band,
        "scale": (min(ends) - reach, max(ends) + reach),
        "factor": factor,
        "digits": digits,
    }


def _of_a_curve(observed: Mapping[str, Any], right: float) -> dict[str, Any]:
    """A number that may be a bound, its interval drawn to the `right` end where it is open; it is
    counted in runs."""
    runs = "1 run" if observed["n"] == 1 else f"{observed['n']} runs"
    sign = {"above": "≥ ", "below": "≤ "}.get(observed["bound"], "")
    drawn = {**observed, "sign": sign, "counted": runs}
    return drawn if observed["high"] is not None else {**drawn, "high": right, "open": True}
