"""Compares evaluations on the same tasks: paired differences, intervals and p-values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentc_backends.agents.evaluate.episode_scores import best_of_rows
from agentc_backends.agents.evaluate.metrics import mean_of
from agentc_backends.agents.evaluate.protocols import protocol_warning
from agentc_backends.statistics.measurements import (
    REVISED,
    REVISION_LENGTH,
    REVISION_SCORES,
    tasks_with_score,
)
from agentc_backends.statistics.scores import (
    WIN_BOUNDS,
    Metrics,
    bounds_of,
    bounds_of_difference,
    describe_difference,
    describe_wins,
    holm,
    read_scores,
    read_wins,
)

TEST = "score test with Student's quantiles, and exact sign flips where few tasks moved"


class ComparisonError(ValueError):
    """The evaluations cannot be compared."""


def compare(
    rows: Sequence[tuple[str, Metrics]],
    baseline: tuple[str, Metrics],
    confidence: float,
    *,
    wins: bool = False,
) -> dict[str, Any]:
    """comparison.json of named evaluations, in the given order; with `wins` each row has its win
    rate against the baseline, too.

    `p_holm` of a difference holds for all rows together. `notes` say what else than the policies
    differs, and of which evaluations no difference can be told. An evaluation that measured the
    best of several attempts has a row for that as well. Raises ComparisonError unless all were made
    on the same tasks of the same split.
    """
    for name, metrics in rows:
        _check_same_tasks(baseline, (name, metrics))
    rows = [each for row in rows for each in (row, *best_of_rows(*row))]
    made = [_row(name, metrics, baseline, confidence) for name, metrics in rows]
    if wins:
        for row, (_, metrics) in zip(made, rows, strict=True):
            row["wins"] = (
                None if metrics is baseline[1] else wins_of(metrics, baseline[1], confidence)
            )
    adjust(made, ("difference", "success_difference", "loops_difference"))
    return {
        "baseline": baseline[0],
        "rows": made,
        "confidence": confidence,
        "notes": [note for row in rows for note in _notes(baseline, row)],
        "test": TEST,
    }


def adjust(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Give the differences of each name the p-value that holds for all rows together."""
    for name in names:
        tested = [row[name] for row in rows if row.get(name) is not None]
        for difference, p in zip(tested, holm([d["p_value"] for d in tested]), strict=True):
            difference["p_holm"] = p


def _row(
    name: str, metrics: Metrics, baseline: tuple[str, Metrics], confidence: float
) -> dict[str, Any]:
    itself = metrics is baseline[1]
    differences = {
        score: None if itself else difference_of(metrics, baseline[1], score, confidence)
        for score in ("reward", "success")
    }
    loops: dict[str, Any] = {}
    if "loops" in metrics.get("asked", {}):
        loops["loops"] = mean_of(metrics, "loops", confidence)
        both = "loops" in baseline[1].get("asked", {}) and not itself
        loops["loops_difference"] = (
            difference_of(metrics, baseline[1], "loops", confidence) if both else None
        )
    return {
        **loops,
        "name": name,
        "n": metrics["n"],
        "n_tasks": metrics.get("n_tasks", len(metrics["tasks"])),
        "n_error": metrics["n_error"],
        "reward": mean_of(metrics, "reward", confidence),
        "success": mean_of(metrics, "success", confidence),
        "difference": differences["reward"],
        "success_difference": differences["success"],
    }


def difference_of(
    metrics: Metrics, baseline: Metrics, score: str, confidence: float
) -> dict[str, Any] | None:
    """Over the tasks that both have a score for: one all of whose episodes ended in infrastructure
    errors has none, and `n` says how many are left. None where none is left."""
    scores = read_scores([(metrics, baseline)], score)
    if not scores.tasks:
        return None
    estimate = scores.estimate(bounds_of_difference(bounds_of(baseline, score)))
    return describe_difference(scores, estimate, confidence)


def wins_of(metrics: Metrics, baseline: Metrics, confidence: float) -> dict[str, Any] | None:
    """How often the reward of a task is above the baseline's, with what that is known to; None
    where no task has a score of both."""
    scores = read_wins([(metrics, baseline)])
    if not scores.tasks:
        return None
    return describe_wins(scores, scores.estimate(WIN_BOUNDS), confidence)


def _notes(first: tuple[str, Metrics], second: tuple[str, Metrics]) -> Iterator[str]:
    """What differs in how two evaluations were made, besides their policies, and where nothing can
    be said of them."""
    (one_name, one), (other_name, other) = first, second
    if one is not other and not read_scores([(other, one)], "reward").tasks:
        yield (
            f"{one_name} and {other_name} have no common task with a score, so their difference is "
            f"not estimated: infrastructure errors took {_lost(one)} tasks of "
            f"{one_name} and {_lost(other)} of {other_name}, {len(one['tasks'])} in all; a rerun "
            "on servers that answer would give them scores"
        )
    apart = protocol_warning(first, second)
    if apart is not None:
        yield apart


def _lost(metrics: Metrics) -> int:
    """Tasks without a score."""
    return sum(task["reward"] is None for task in metrics["tasks"].values())


def _check_same_tasks(first: tuple[str, Metrics], second: tuple[str, Metrics]) -> None:
    (one_name, one), (other_name, other) = first, second
    for what in ("environment", "split"):
        if one[what] != other[what]:
            raise ComparisonError(
                f"{one_name} was evaluated on {what} {one[what]!r} and {other_name} on "
                f"{other[what]!r}; a paired comparison needs the same tasks"
            )
    only_one, only_other = (
        set(one["tasks"]) - set(other["tasks"]),
        set(other["tasks"]) - set(one["tasks"]),
    )
    if only_one or only_other:
        example = min(only_one or only_other)
        raise ComparisonError(
            f"{one_name} and {other_name} were evaluated on different tasks: {len(only_one)} only "
            f"in the first, {len(only_other)} only in the second (for example {example!r}); give "
            "both the same split, limit and environment settings"
        )


# MERGED revisions:
# Compares revisions by what their actors saw of their mistakes: paired by task, as evaluations
# are
# (`comparison.py`). Which tasks have revisions is a result of each search.


def compare_revisions(
    rows: Sequence[tuple[str, Metrics]], baseline: tuple[str, Metrics], confidence: float
) -> dict[str, Any]:
    """comparison.json of named revisions, in the given order. `scores` names what stands in place
    of reward and success; `difference` is of the first."""
    longest = max(metrics["length_range"][1] for _, metrics in (*rows, baseline))
    alike = {"length_range": [baseline[1]["length_range"][0], longest]}
    held = {**baseline[1], **alike}
    made = [
        _revision_row(
            name, {**metrics, **alike}, None if metrics is baseline[1] else held, confidence
        )
        for name, metrics in rows
    ]
    adjust(made, ("difference", f"{REVISED}_difference"))
    return {
        "baseline": baseline[0],
        "scores": list(REVISION_SCORES),
        "rows": made,
        "confidence": confidence,
        "notes": [
            *(
                f"{baseline[0]} and {row['name']} have no task in common with revisions of both, "
                "so their difference is not estimated"
                for row in made
                if row["name"] != baseline[0] and row[f"{REVISED}_difference"] is None
            ),
            *filter(None, (protocol_warning(baseline, row) for row in rows)),
        ],
        "test": TEST,
    }


def _revision_row(
    name: str, metrics: Metrics, baseline: Mapping[str, Any] | None, confidence: float
) -> dict[str, Any]:
    """Means over the tasks that have revisions; differences over those that both have some of."""
    scores = {score: tasks_with_score(metrics, score) for score in REVISION_SCORES}
    differences = {
        score: None
        if baseline is None
        else difference_of(scores[score], tasks_with_score(baseline, score), score, confidence)
        for score in REVISION_SCORES
    }
    return {
        "name": name,
        "n": metrics["n"],
        "n_tasks": len(metrics["tasks"]),
        "n_error": 0,
        **{score: mean_of(scores[score], score, confidence) for score in REVISION_SCORES},
        "difference": differences[REVISION_LENGTH],
        f"{REVISED}_difference": differences[REVISED],
    }
