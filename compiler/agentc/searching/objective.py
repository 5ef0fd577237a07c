"""What a trial is worth: a stage's metric in the store, after each round."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentc.plan.stage_names import matching_names, without_cell
from agentc.plan.work import Document, object_of
from agentc.program.artifact_files import METRICS_FILE
from agentc.runtime.store.layout import StoreLayout


@dataclass(frozen=True, slots=True)
class Measured:
    """The stage that measures a trial after `round` (0: it is in none), without its cell, and the
    objects that hold its results, one for each cell."""

    round: int
    stage: str
    objects: tuple[str, ...]


def measures_of(document: Document, stage: str) -> tuple[Measured, ...]:
    """By round, the last of which gives the trial's value. Empty where the plan has no such stage
    that measures anything."""
    jobs = [job for job in document["jobs"] if job["produces"] == "Metrics"]
    meant = set(matching_names(stage, [str(job["stage"]) for job in jobs]))
    found: dict[int, tuple[str, list[str]]] = {}
    for job in jobs:
        if job["stage"] in meant:
            name = without_cell(str(job["stage"]))
            found.setdefault(int(job.get("round") or 0), (name, []))[1].append(object_of(job))
    return tuple(Measured(at, name, tuple(of)) for at, (name, of) in sorted(found.items()))


def value_of(measured: Measured, metric: str, layout: StoreLayout) -> float | None:
    """The mean over the cells; None where one has no score, or is not in the store."""
    means = list(_means(measured, metric, layout))
    known = [mean for mean in means if mean is not None]
    return sum(known) / len(known) if known and len(known) == len(means) else None


def _means(measured: Measured, metric: str, layout: StoreLayout) -> Iterator[float | None]:
    for name in measured.objects:
        if not layout.is_published(name):
            yield None
            continue
        text = (layout.data(name) / METRICS_FILE).read_text(encoding="utf-8")
        metrics: dict[str, Any] = json.loads(text)
        score = metrics.get(metric) or (metrics.get("asked") or {}).get(metric) or {}
        mean = score.get("mean")
        yield float(mean) if isinstance(mean, (int, float)) else None
