"""Roots: what a store must keep. The objects of each experiment's last plan, of the plans of runs
that are going on, and what any wrapper at work makes or reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.runtime import holder
from agentc.runtime.claim import read_records
from agentc.runtime.layout import StoreLayout
from agentc.runtime.visible import patience, refresh
from agentc.store.in_use import plans_in_use
from agentc.store.paths import RunFolder, run_names

_QUIET_S = 900.0
"""A wrapper on another machine that was not heard of for so long is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Objects that are needed, and the digests of the locks of software environments."""

    objects: frozenset[str]
    environments: frozenset[str]


def find_roots(layout: StoreLayout, but: Collection[str] = ()) -> Roots:
    """What is needed now, by others than the holders `but` (by nonce). Raises ValueError when a
    plan cannot be read: its objects would look like garbage."""
    paths = [RunFolder.of(layout, name).last_plan for name in run_names(layout)]
    plans = [_read_plan(path) for path in (*paths, *plans_in_use(layout))]
    objects = {name for plan in plans for name in plan_objects(plan)}
    environments = {e["lock"][:16] for plan in plans for e in plan["environments"].values()}
    return Roots(
        objects=frozenset(objects | used_by_wrappers(layout, but)),
        environments=frozenset(environments),
    )


def used_by_wrappers(layout: StoreLayout, but: Collection[str] = ()) -> set[str]:
    """What wrappers at work (those that plain Snakemake started too) make and read."""
    if patience(layout) > 0:
        refresh(layout.root / "locks")
    used: set[str] = set()
    for record in read_records(layout, quiet_s=_QUIET_S):
        if record.get("nonce") not in but and not holder.is_gone(record):
            used |= {str(record.get("object")), *map(str, record.get("needs") or ())}
    return used


def plan_objects(plan: Mapping[str, Any]) -> set[str]:
    """Every object that a plan (plan.json, decoded) names."""
    jobs = {f"{job['kind']}/{job['key']}" for job in plan["jobs"]}
    return jobs | {f"session/{session['key']}" for session in plan.get("sessions") or []}


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
        plan = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read ({error}); nothing was deleted") from None
    assert isinstance(plan, dict)
    return plan
