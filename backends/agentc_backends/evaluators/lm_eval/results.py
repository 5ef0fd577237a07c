"""Reads what lm-eval wrote: results_<date>.json, and samples_<task>_<date>.jsonl for each task.

A task may have several filters (ways to take an answer out of a reply); a sample then has a row for
each, and its measures are called `exact_match,strict-match`, as lm-eval's own tables do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentc.program.job import each_row, read_json
from agentc_backends.evaluators.common.samples import (
    Evaluated,
    EvaluatorError,
    ScoredSample,
    metric_of_tasks,
    score_of,
)

_RESULTS = "results_"


def read_results(out: Path, asked: str | None) -> Evaluated:
    """All samples of all tasks, scored by the measure that was asked for. Raises EvaluatorError
    where there is none such, or where a measure is of all samples together (perplexity, F1)."""
    found = sorted(out.rglob(f"{_RESULTS}*.json"))
    if len(found) != 1:
        raise EvaluatorError(f"lm-eval left {len(found)} files of results, not one")
    results = read_json(found[0])
    date = found[0].stem.removeprefix(_RESULTS)
    files = {
        task: found[0].with_name(f"samples_{task}_{date}.jsonl") for task in results["configs"]
    }
    # A group of tasks has none of its own.
    by_task = {task: _scores(path) for task, path in files.items() if path.is_file()}
    if not by_task:
        raise EvaluatorError("lm-eval left no samples")
    metric = metric_of_tasks(asked, by_task)
    return Evaluated(
        release=f"lm_eval {results['lm_eval_version']}",
        metric=metric,
        tasks={task: _facts(task, results) for task in by_task},
        samples=[
            ScoredSample(task=task, id=number, score=score)
            for task, scores in by_task.items()
            for number, score in scores[metric].items()
        ],
    )


def _scores(path: Path) -> dict[str, dict[str, float]]:
    """By measure and sample; measures that give no number of every sample are left out."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    no_number: set[str] = set()
    for row in each_row(path):
        for name in row["metrics"]:
            metric, score = f"{name},{row['filter']}", score_of(row.get(name))
            if score is None:
                no_number.add(metric)
            else:
                found[metric][str(row["doc_id"])] = score
    return {metric: scores for metric, scores in found.items() if metric not in no_number}


def _facts(task: str, results: Mapping[str, Any]) -> dict[str, Any]:
    """Its version and examples, and lm-eval's digest of its samples, prompts and answers."""
    return {
        "version": results["versions"].get(task),
        "few_shot": results["n-shot"].get(task),
        "hash": results.get("task_hashes", {}).get(task),
    }
