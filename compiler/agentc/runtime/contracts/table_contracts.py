"""Post-conditions of the small artifacts: Metrics, Comparison, Verdicts, Report."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.program.artifact_files import (
    COMPARISON_FILE,
    METRICS_FILE,
    REPORT_PAGE,
    SCORES_FILE,
    VERDICTS_FILE,
)

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding

VERDICTS = (
    *("reproduced", "not reproduced"),  # a claim with a paper's value
    *("supported", "contradicted"),  # any other
    *("inconclusive", "not judged"),
)

_REMOTE = re.compile(
    rb"""<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)\s*=\s*["']?\s*"""
    rb"""(?:https?:)?//""",
    re.IGNORECASE,
)


def check_metrics(artifact: Artifact) -> Iterator[Finding]:
    """metrics.json: counts, means inside their intervals, one entry for each task."""
    name = METRICS_FILE
    value, problem = _read(artifact.data / name)
    if value is None:
        yield (name, None, None, problem)
        return
    for field in ("name", "split"):
        if not isinstance(value.get(field), str):
            yield (name, None, field, f"expected text, found {value.get(field)!r}")
    for field in ("n", "n_error"):
        if not _is_count(value.get(field)):
            yield (name, None, field, f"expected a count, found {value.get(field)!r}")
    span = artifact.contract.get("reward_range")
    for field, bounds in (("reward", span), ("success", [0.0, 1.0])):
        for inner, message in _interval(value.get(field), bounds):
            yield (name, None, f"{field}.{inner}", message)
    tasks = value.get("tasks")
    if not isinstance(tasks, dict):
        yield (name, None, "tasks", "expected an object with one entry for each task")
        return
    for task, entry in tasks.items():
        if not isinstance(entry, dict) or not _is_count(entry.get("attempts")):
            yield (name, None, "tasks." + task, "expected {reward, success, attempts}")
        elif entry["attempts"] > 0 and not _is_number(entry.get("reward")):
            yield (name, None, f"tasks.{task}.reward", "expected a number")
    if _is_count(value.get("n")) and value["n"] < artifact.contract.get("min_rows", 1):
        yield (name, None, "n", "no episode was scored")


def check_task_scores(artifact: Artifact) -> Iterator[Finding]:
    """scores.jsonl: a task, and a number or null for each attempt at it."""
    name, scored = SCORES_FILE, 0
    span = artifact.contract.get("reward_range") or [-math.inf, math.inf]
    path = artifact.data / name
    if not path.is_file():
        yield (name, None, None, "the file is missing")
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield (name, number, None, f"not JSON: {error}")
            continue
        if not isinstance(row, dict):
            yield (name, number, None, f"expected an object, found {row!r}")
            continue
        if not isinstance(row.get("task"), str) or not row["task"]:
            yield (
                name,
                number,
                "task",
                f"expected the name of a task, found {row.get('task')!r}",
            )
        score, success = row.get("score"), row.get("success")
        if "score" not in row:
            yield (name, number, "score", "is missing; null where it could not be determined")
        elif score is not None and not _is_number(score):
            yield (name, number, "score", f"expected a number or null, found {score!r}")
        elif score is not None and not span[0] <= score <= span[1]:
            yield (
                name,
                number,
                "score",
                "{!r} is outside of `range: [{:g}, {:g}]`".format(score, *span),
            )
        if success is not None and not (
            isinstance(success, bool) or (_is_number(success) and 0 <= success <= 1)
        ):
            message = f"expected true, false or a share, found {success!r}"
            yield (name, number, "success", message)
        for field in sorted(set(row) - {"task", "score", "success", "attempt"}):
            yield (name, number, field, "nobody reads it: rows are {task, score, success, attempt}")
        scored += score is not None
    if not scored:
        yield (name, None, None, "no task has a score")


def check_comparison(artifact: Artifact) -> Iterator[Finding]:
    """comparison.json: one row for each evaluation, or revision, the baseline among them."""
    name = COMPARISON_FILE
    value, problem = _read(artifact.data / name)
    if value is None:
        yield (name, None, None, problem)
        return
    rows = value.get("rows")
    if not isinstance(rows, list) or not rows:
        yield (name, None, "rows", "expected a non-empty list")
        return
    names: list[Any] = [row.get("name") if isinstance(row, dict) else None for row in rows]
    if len(set(map(str, names))) != len(names):
        yield (name, None, "rows", f"two rows bear one name: {names}")
    if value.get("baseline") not in names:
        yield (name, None, "baseline", f"{value.get('baseline')!r} is no row's name")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            yield (name, number, None, "expected an object")
            continue
        if not _is_count(row.get("n")):
            yield (name, number, "n", f"expected a count, found {row.get('n')!r}")
        lead, share = _scores(value)
        for field, bounds in ((lead, None), (share, [0.0, 1.0])):
            for inner, message in _interval(row.get(field), bounds):
                yield (name, number, f"{field}.{inner}", message)
        difference = row.get("difference")
        if difference is not None:
            for inner, message in _interval(difference, None):
                yield (name, number, f"difference.{inner}", message)
            chance = difference.get("p_value") if isinstance(difference, dict) else None
            if chance is not None and not (_is_number(chance) and 0 <= chance <= 1):
                yield (name, number, "difference.p_value", f"{chance!r} is no probability")


def _scores(comparison: Mapping[str, Any]) -> tuple[str, str]:
    """What its rows hold: a score that differences are of, and a share."""
    named = comparison.get("scores")
    if isinstance(named, list) and len(named) == 2:
        return str(named[0]), str(named[1])
    return "reward", "success"


def check_verdicts(artifact: Artifact) -> Iterator[Finding]:
    """claims.json: each claim with one of four verdicts and the reason for it."""
    name = VERDICTS_FILE
    value, problem = _read(artifact.data / name)
    if value is None:
        yield (name, None, None, problem)
        return
    claims = value.get("claims")
    if not isinstance(claims, list):
        yield (name, None, "claims", "expected a list")
        return
    for number, claim in enumerate(claims, start=1):
        if not isinstance(claim, dict):
            yield (name, number, None, "expected an object")
            continue
        if claim.get("verdict") not in VERDICTS:
            shown = f"{claim.get('verdict')!r} is none of {', '.join(VERDICTS)}"
            yield (name, number, "verdict", shown)
        for field in ("name", "stage", "because"):
            if not isinstance(claim.get(field), str):
                yield (name, number, field, f"expected text, found {claim.get(field)!r}")
        for field in ("observed", "paper", "difference"):
            if claim.get(field) is not None:
                for inner, message in _interval(_closed(claim[field]), None):
                    yield (name, number, f"{field}.{inner}", message)


def _closed(value: Any) -> Any:
    """An interval whose upper end may be open, which is null beside its `bound`: then it ends where
    its number is, or beyond."""
    if isinstance(value, Mapping) and "bound" in value and value.get("high") is None:
        return dict(value, high=value.get("mean"))
    return value


def check_report(artifact: Artifact) -> Iterator[Finding]:
    """index.html: one page that loads nothing from a network."""
    path = artifact.data / REPORT_PAGE
    if not path.is_file():
        yield (REPORT_PAGE, None, None, "the file is missing")
        return
    page = path.read_bytes()
    if not page.lstrip()[:15].lower().startswith(b"<!doctype html"):
        yield (REPORT_PAGE, None, None, "does not begin with <!doctype html>")
    found = _REMOTE.search(page)
    if found:
        shown = found.group(0).decode("utf-8", "replace")
        yield (REPORT_PAGE, None, None, f"loads something from a network: {shown}")


def _interval(value: Any, bounds: list[float] | None) -> Iterator[tuple[str, str]]:
    """Findings about {mean, low, high}; all three null when there was nothing to average."""
    if not isinstance(value, Mapping):
        yield "mean", f"expected {{mean, low, high}}, found {value!r}"
        return
    found = {name: value.get(name) for name in ("mean", "low", "high")}
    if all(number is None for number in found.values()):
        return
    for name, number in found.items():
        if not _is_number(number):
            yield name, f"expected a number, found {number!r}"
            return
    mean, low, high = (float(value[name]) for name in ("mean", "low", "high"))
    if not low - 1e-9 <= mean <= high + 1e-9:
        yield "mean", f"{mean:g} lies outside its interval [{low:g}, {high:g}]"
    if bounds is not None and not bounds[0] - 1e-6 <= mean <= bounds[1] + 1e-6:
        yield "mean", f"{mean:g} is outside [{bounds[0]:g}, {bounds[1]:g}]"


def _read(path: Path) -> tuple[Mapping[str, Any] | None, str]:
    if not path.is_file():
        return None, "the file is missing"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"
    if not isinstance(value, dict):
        return None, "expected an object"
    return value, ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
