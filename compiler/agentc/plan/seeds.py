"""Data that a sweep makes once for each seed, though nothing else in them differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentc.kinds import kind_named
from agentc.plan.diff import changed_values
from agentc.plan.stage_names import of_all_cells

_SEED = {"settings.seed"}


def seed_notes(jobs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line on each stage without inputs, such as an expert, whose cells differ by their seed
    only, which is often that of `defaults:`."""
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for job in jobs:
        kind = kind_named(str(job["kind"]))
        if kind is not None and not kind.roles:
            cells.setdefault(of_all_cells(str(job["id"])), []).append(job)
    for name, (first, *others) in cells.items():
        if others and all(_differs_by_seed(first, other) for other in others):
            stage = name.partition("@")[0]
            yield (
                f"note: {stage} differs between cells by `seed` only; `{stage}: {{seed: 0}}` "
                "would run once for all"
            )


def _differs_by_seed(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    changes = changed_values(one["identity"], other["identity"])
    return one["inputs"] == other["inputs"] and {change.path for change in changes} == _SEED
