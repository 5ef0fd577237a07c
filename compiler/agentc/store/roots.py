"""Roots: what a store must keep. Of each variant that was run (`variant.py`) the objects of its
last plan and of its last complete ones, those of the plans of runs that are going on, and what any
wrapper at work makes or reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from agentc.runtime.store import holder
from agentc.runtime.store.claim import read_records
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.visible import refresh, visibility_timeout
from agentc.store.in_use import plan_uses
from agentc.store.known_runs import complete_plans, is_complete, read_facts
from agentc.store.paths import RunFolder, all_folders, run_folders

_QUIET_S = 900.0
"""A wrapper on another machine that was not heard of for so long is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Objects that are needed, and the digests of the locks of software environments."""

    objects: frozenset[str]
    environments: frozenset[str]


def find_roots(layout: StoreLayout, but: Collection[str] = (), keep_runs: int = 1) -> Roots:
    """What is needed now, by others than the holders `but` (by nonce); `keep_runs` complete plans
    count of each variant. Raises ValueError when a plan cannot be read: its objects would look
    like garbage."""
    try:
        # Those at work first: a run that ends meanwhile has entered its plan into the history.
        uses = [use for folder in _folders_anew(layout) for use in plan_uses(folder)]
        paths = [use.plan for use in uses if use.alive or _was_finished(layout, use.plan)]
        paths += [folder.last_plan for _, folder in run_folders(layout)]
        paths += complete_plans(layout, keep_runs)
        plans = [read_facts(path) for path in dict.fromkeys(paths)]
    except ValueError as error:
        raise ValueError(
            f"{error}; nothing was deleted. A folder under {layout.root / 'runs'} that is removed"
            " takes its runs out of the reckoning"
        ) from None
    objects = {name for plan in plans for name in plan.objects}
    return Roots(
        objects=frozenset(objects | used_by_wrappers(layout, but)),
        environments=frozenset(digest for plan in plans for digest in plan.environments),
    )


def _folders_anew(layout: StoreLayout) -> list[RunFolder]:
    """Folders of runs, with those that another node has made a moment ago: a first run's."""
    if visibility_timeout(layout) <= 0:
        return all_folders(layout)
    refresh(layout.root / "runs")
    folders = all_folders(layout)
    for folder in folders:
        refresh(folder.path)
    return folders


def _was_finished(layout: StoreLayout, plan: Path) -> bool:
    """Whether a run that was killed had made all, which nobody has entered into the history yet."""
    return plan.is_file() and is_complete(layout, read_facts(plan))


def used_by_wrappers(layout: StoreLayout, but: Collection[str] = ()) -> set[str]:
    """What wrappers at work (those that plain Snakemake started too) make and read."""
    if visibility_timeout(layout) > 0:
        refresh(layout.root / "locks")
    used: set[str] = set()
    for record in read_records(layout, quiet_s=_QUIET_S):
        if record.get("nonce") not in but and not holder.is_gone(record):
            used |= {str(record.get("object")), *map(str, record.get("needs") or ())}
    return used
