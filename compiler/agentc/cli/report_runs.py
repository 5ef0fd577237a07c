"""`agentc report A B`: several runs on one page, each with the tables of its report."""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agentc.cli.choose_run import choose_run
from agentc.exit_codes import EXIT_NOT_FOUND
from agentc.result_tables import TABLES_FILE
from agentc.store.paths import RunFolder, value_text

if TYPE_CHECKING:
    from agentc.plan.work import Work
    from agentc.run.side_by_side import RunSide
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.run_history import PastRun

PageOf = Callable[["PastRun", "Work", "StoreLayout"], Path]
"""The page of a run's report, rendered where the run is unfinished."""


class SameRunError(Exception):
    """Two of the names mean one run."""

    exit_code = EXIT_NOT_FOUND


def compared_page(
    names: Sequence[str], arguments: argparse.Namespace, layout: StoreLayout, page_of: PageOf
) -> Path:
    """Write the page of these runs into the folder of the first; its path. Raises SameRunError
    and what `page_of` raises."""
    from agentc.plan.work import find_work, read_plan
    from agentc.run.report_page import report_to_show
    from agentc.run.side_by_side import side_by_side
    from agentc.store.run_history import list_runs

    known = {run.label: run for run in list_runs(layout)}
    # `quickstart` is that very variant here, and not the one that was run last.
    exact = known if arguments.scale is None and not arguments.params else {}
    runs = [exact.get(name) or choose_run(layout, name, arguments) for name in names]
    labels = [run.label for run in runs]
    if len({*labels}) < len(labels):
        raise SameRunError(
            f"these names mean the same run: {', '.join(labels)}; "
            "name variants by their labels, as `agentc status` shows them (quickstart@seed=1)"
        )
    digest = hashlib.sha256("\n".join(labels).encode("utf-8")).hexdigest()[:8]
    target = runs[0].folder.path / f"side-by-side-{digest}.html"
    sides = []
    for run in runs:
        work = find_work(read_plan(run.folder.last_plan), layout)
        page = page_of(run, work, layout)
        sides.append(_side(run, work, page, report_to_show(page, work), target))
    target.write_text(side_by_side(sides), encoding="utf-8")
    return target


def _side(run: PastRun, work: Work, page: Path, shown: Path, target: Path) -> RunSide:
    from agentc.result_tables import read_tables
    from agentc.run.side_by_side import RunSide

    tables = read_tables(page.with_name(TABLES_FILE).read_text(encoding="utf-8"))
    return RunSide(
        label=run.label,
        document=work.document,
        tables={table.name: table for table in tables},
        facts=_facts(work, run.folder),
        address=quote(os.path.relpath(shown, target.parent)),
    )


def _facts(work: Work, folder: RunFolder) -> dict[str, str]:
    """Scale, params, when the run began, and its commit."""
    from agentc.program.job import read_json

    document, state = work.document, read_json(folder.state)
    experiment: dict[str, Any] = document.get("experiment") or {}
    found = {"scale": str(experiment.get("scale") or "full")}
    params: dict[str, Any] = document.get("params") or {}
    found |= {name: value_text(value) for name, value in params.items()}
    began, commit = state.get("began"), state.get("commit")
    if isinstance(began, (int, float)):
        found["began"] = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(began))
    if isinstance(commit, dict) and commit.get("id"):
        found["commit"] = str(commit["id"])[:12]
    missing = len(work.missing)
    if missing:
        found["unfinished"] = f"{missing} of {len(work.needed)} jobs are missing"
    return found
