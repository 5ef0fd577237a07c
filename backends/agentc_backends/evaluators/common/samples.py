"""What an evaluator said of each sample, as rows of TaskScores, and beside them `evaluator.json`:
by which program, of which tasks, and by which measure. `job_metrics.py` reads both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.program.job import Job, write_json, write_rows

ABOUT = "evaluator.json"


class EvaluatorError(Exception):
    """The evaluator failed, or what it wrote cannot be scored; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSample:
    """`score` None: the evaluator could not tell it, as where a request failed."""

    task: str
    id: str
    score: float | None
    attempt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The samples of all tasks. `release` is the evaluator with its version; `tasks` says of each
    what decides the meaning of its scores, for those who compare them with others."""

    release: str
    metric: str
    tasks: Mapping[str, Mapping[str, Any]]
    samples: Sequence[ScoredSample]


def score_of(value: object) -> float | None:
    """A finite number as such; None for anything else."""
    if isinstance(value, (bool, int, float)) and math.isfinite(value):
        return float(value)
    return None


def chosen_metric(asked: str | None, known: Iterable[str], samples: str = "samples") -> str:
    """The measure that a stage asks for, by its whole name or what stands before its comma, or the
    only one that there is. Raises EvaluatorError."""
    names = sorted(set(known))
    if not names:
        raise EvaluatorError(f"no measure gives a number of every one of the {samples}")
    if asked is None:
        found = names
    else:
        found = [name for name in names if asked == name or asked == name.partition(",")[0]]
        exact = [name for name in found if name == asked]
        found = exact or found
    if len(found) == 1:
        return found[0]
    what = "`metric` has to say which" if asked is None else f"there is no single {asked!r}"
    raise EvaluatorError(f"{what}: the measures of single samples are {', '.join(names)}")


def metric_of_tasks(asked: str | None, known: Mapping[str, Iterable[str]]) -> str:
    """The measure of all tasks, of those that each has. Raises EvaluatorError."""
    shared = set.intersection(*(set(names) for names in known.values()))
    if not shared and len(known) > 1:
        told = "; ".join(f"{task}: {', '.join(names)}" for task, names in known.items())
        raise EvaluatorError(f"the tasks share no measure, so give each a stage of its own: {told}")
    return chosen_metric(asked, shared, f"samples of {', '.join(known)}")


def write_evaluated(job: Job, found: Evaluated, success_at: float | None) -> None:
    """scores.jsonl and evaluator.json of a job, its facts, and a line for each task."""
    rows = [
        {
            "task": f"{sample.task}/{sample.id}",
            "attempt": sample.attempt,
            "score": sample.score,
            **(
                {}
                if success_at is None or sample.score is None
                else {"success": sample.score >= success_at}
            ),
        }
        for sample in found.samples
    ]
    write_rows(job.out / "scores.jsonl", rows)
    write_json(
        job.out / ABOUT,
        {
            "release": found.release,
            "metric": found.metric,
            "tasks": {name: dict(facts) for name, facts in found.tasks.items()},
            "success_at": success_at,
        },
    )
    means: dict[str, float] = {}
    for task in found.tasks:
        scores = [s.score for s in found.samples if s.task == task and s.score is not None]
        if scores:
            means[task] = sum(scores) / len(scores)
            print(f"{task}: {found.metric} {means[task]:.4f} over {len(scores)} samples")
    errors = sum(sample.score is None for sample in found.samples)
    job.facts(rows=len(rows), errors=errors, evaluator=found.release, by_task=means)
    job.progress(len(rows), len(rows), "rows", force=True)
    if errors:
        job.warn(f"{errors} of {len(rows)} samples have no score; they are left out of all means")
