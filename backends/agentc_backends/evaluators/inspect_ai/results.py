"""Scores of what inspect logged: a log for each task, and for each attempt at its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.evaluators.common.samples import (
    Evaluated,
    EvaluatorError,
    ScoredSample,
    metric_of_tasks,
    score_of,
)
from agentc_backends.evaluators.inspect_ai.logs import LoggedTask


def evaluated(
    attempts: Sequence[Sequence[LoggedTask]], params: Mapping[str, Any], asked: str | None
) -> Evaluated:
    """All samples of all tasks, scored by the measure that was asked for; a measure is one of a
    scorer that gives a number wherever it gives a value. Raises EvaluatorError where there is none
    such, where a task did not end well or took none of the `params`, and where two attempts were
    not at the same samples."""
    first = {log.task: log for log in attempts[0]}
    if not first:
        raise EvaluatorError("inspect left no logs")
    if len(first) < len(attempts[0]):
        raise EvaluatorError("two tasks have one name; give each a stage of its own")
    for log in (log for logs in attempts for log in logs):
        _check(log, first[log.task])
    unused = sorted(
        name for name in params if not any(name in log.params for log in first.values())
    )
    if unused:
        raise EvaluatorError(
            f"no task takes {', '.join(unused)}; the params of tasks are "
            + "; ".join(f"{task}: {', '.join(log.params) or 'none'}" for task, log in first.items())
        )
    metric = metric_of_tasks(asked, {task: _measures(attempts, task) for task in first})
    return Evaluated(
        release=attempts[0][0].release,
        metric=metric,
        tasks={
            task: {
                "version": log.version,
                "params": dict(log.params),
                "solvers": [*log.solvers],
                "hash": log.digest,
            }
            for task, log in first.items()
        },
        samples=[
            ScoredSample(
                task=log.task,
                id=sample.id,
                score=score_of(sample.values.get(metric)),
                attempt=number,
            )
            for number, logs in enumerate(attempts)
            for log in logs
            for sample in log.samples
        ],
    )


def _check(log: LoggedTask, first: LoggedTask) -> None:
    if log.status != "success":
        raise EvaluatorError(f"{log.task} ended with status {log.status}: {log.error}")
    if log.digest != first.digest:
        raise EvaluatorError(
            f"the samples of {log.task} were others at another attempt; have it shuffle, and draw, "
            "with a seed of its own"
        )


def _measures(attempts: Sequence[Sequence[LoggedTask]], task: str) -> list[str]:
    rows = [
        sample.values
        for logs in attempts
        for log in logs
        if log.task == task
        for sample in log.samples
    ]
    no_number = {name for row in rows for name, value in row.items() if value is None}
    return sorted({name for row in rows for name in row} - no_number)
