"""What logs of inspect say, read by inspect's own reader, and scores of it: a log for each task,
and for each attempt at its samples. Only here is inspect's package imported, in the software
environment that has it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc_backends.evaluators.common.evaluator import (
    EvaluatorError,
    EvaluatorResult,
    ScoredSample,
    metric_of_tasks,
    score_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSample:
    """A sample as it was scored: by measure a number, or None where the scorer's value is none
    (a list, a word). A value NaN says that the scorer left it unscored."""

    id: str
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTask:
    """One log. `params` are those that the task took; `digest` is of ids, inputs, choices and
    targets; `status` is `success` where it came to its end, and `error` says why it did not."""

    release: str
    task: str
    version: str
    status: str
    error: str | None
    params: Mapping[str, Any]
    solvers: tuple[str, ...]
    digest: str
    samples: tuple[LoggedSample, ...]


def read_log(path: Path) -> LoggedTask:
    """Raises what inspect's reader raises where the file is none of its logs."""
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(path), exclude_fields={"events", "store", "attachments"})
    samples = log.samples or []
    return LoggedTask(
        release=f"inspect {log.eval.packages['inspect_ai']}",
        task=log.eval.task,
        version=str(log.eval.task_version),
        status=log.status,
        error=None if log.error is None else log.error.message,
        params=log.eval.task_args,
        solvers=tuple(step.solver for step in log.plan.steps),
        digest=_digest(samples),
        samples=tuple(
            LoggedSample(id=str(sample.id), values=_values(sample.scores or {}))
            for sample in samples
        ),
    )


def _values(scores: Mapping[str, Any]) -> dict[str, float | None]:
    """By scorer, or `scorer,key` where a scorer's value is a mapping."""
    found: dict[str, float | None] = {}
    for name, score in scores.items():
        if isinstance(score.value, dict):
            found |= {f"{name},{key}": _number(value) for key, value in score.value.items()}
        else:
            found[name] = _number(score.value)
    return found


def _number(value: object) -> float | None:
    """As inspect makes it one; but None for the texts that it would take for 0 with a warning."""
    from inspect_ai.scorer import INCORRECT, NOANSWER, value_to_float

    if not isinstance(value, (bool, int, float, str)):
        return None
    number = float(value_to_float()(value))
    if number == 0 and isinstance(value, str) and value not in (INCORRECT, NOANSWER):
        return number if value.lower() in ("no", "false") or _is_zero(value) else None
    return number


def _is_zero(text: str) -> bool:
    try:
        return float(text) == 0
    except ValueError:
        return False


def _digest(samples: list[Any]) -> str:
    """SHA-256 of what was asked and expected, whatever the order."""
    lines = sorted(
        json.dumps(
            [sample.id, _prompt_of(sample.input), sample.choices, sample.target], default=str
        )
        for sample in samples
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _prompt_of(given: Any) -> Any:
    """A prompt, or its messages without the ids that they get anew in each log."""
    if isinstance(given, str):
        return given
    return [message.model_dump(mode="json", exclude={"id"}) for message in given]


def evaluation_of_logs(
    attempts: Sequence[Sequence[LoggedTask]], params: Mapping[str, Any], asked: str | None
) -> EvaluatorResult:
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
    return EvaluatorResult(
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
