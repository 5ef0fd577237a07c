"""Whose objects are: the variants and stages that plans of past runs have them from, for `gc` and
`ls`; and the reports on the disk that were made from them."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentc.runtime.store.layout import StoreLayout
from agentc.store.known_runs import read_facts
from agentc.store.objects import read_object
from agentc.store.paths import run_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """`label` is empty where no plan that was kept names the object."""

    label: str
    job: str


def find_owners(layout: StoreLayout, names: Collection[str]) -> dict[str, Owner]:
    """Who has had these objects made, by their names; of several the one run last."""
    found: dict[str, Owner] = {}
    wanted = set(names)
    for _, folder in run_folders(layout):
        for plan in (folder.last_plan, folder.previous_plan, *folder.kept_plans()):
            if not wanted - set(found):
                return found
            with suppress(ValueError):
                for name, job in read_facts(plan).objects.items():
                    if name in wanted and name not in found:
                        found[name] = Owner(label=folder.label, job=job)
    for name in wanted - set(found):
        job = ""
        with suppress(OSError, ValueError):
            job = str(read_object(layout, name).manifest.get("id") or "")
        found[name] = Owner(label="", job=job)
    return found


def reports_of(layout: StoreLayout, names: Collection[str]) -> list[tuple[Path, bool]]:
    """Pages that people may have kept the path of and whose results are among these objects; with
    each whether it goes itself."""
    pages = [
        (page, True)
        for name in sorted(names)
        if (page := layout.data(name) / "index.html").is_file()
    ]
    for _, folder in run_folders(layout):
        with suppress(OSError, ValueError, AttributeError):
            source = json.loads(folder.report_source.read_text(encoding="utf-8")).get("object")
            if source in names and folder.report.is_file():
                pages.append((folder.report, False))
    return pages
