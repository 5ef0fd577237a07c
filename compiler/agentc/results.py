"""A run's results for notebooks and scripts: its tables, the rows of its stages, its checkpoints.

from agentc.results import open_run

run = open_run("quickstart")
run.tables["results"].rows
rewards = [episode["reward"] for episode in run.rows("evaluate")]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.kinds.artifacts import ARTIFACT_TYPES, REPORT
from agentc.result_tables import TABLES_FILE, ResultTable, read_tables
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder, readable_store, run_names

_TYPES = {artifact.name: artifact for artifact in ARTIFACT_TYPES}


class ResultsError(Exception):
    """There is no such run, stage or file, or it is not finished; the message says which there
    are."""


@dataclass(frozen=True)
class RunResults:
    """The results of the last run of an experiment. `name` is as in `agentc status --all-runs`."""

    name: str
    layout: StoreLayout
    jobs: Mapping[str, Mapping[str, Any]]
    """Its jobs in the plan, by id."""

    @property
    def finished(self) -> tuple[str, ...]:
        """The jobs that have a result, by id, in the order of the plan."""
        return tuple(name for name in self.jobs if self.layout.is_published(self._object(name)))

    def folder(self, job: str) -> Path:
        """The folder that a job made, such as a checkpoint. Raises ResultsError."""
        if job not in self.jobs:
            hint = did_you_mean(job, self.jobs) or f"there are {listed(self.jobs)}"
            raise ResultsError(f"{self.name} has no job `{job}`; {hint}")
        name = self._object(job)
        if not self.layout.is_published(name):
            raise ResultsError(f"`{job}` of {self.name} is not finished")
        return self.layout.data(name)

    def manifest(self, job: str) -> dict[str, Any]:
        """What is recorded of a job: facts, inputs, software, machine, times. Raises
        ResultsError."""
        self.folder(job)
        text = self.layout.manifest(self._object(job)).read_text(encoding="utf-8")
        manifest: dict[str, Any] = json.loads(text)
        return manifest

    def rows(self, job: str) -> Iterator[dict[str, Any]]:
        """The rows that a job made, one at a time: episodes, conversations, preference pairs,
        search trees, scores. Raises ResultsError for an artifact without rows."""
        folder = self.folder(job)
        artifact = _TYPES[self.jobs[job]["produces"]]
        if artifact.rows is None:
            raise ResultsError(f"`{job}` makes a {artifact.name}, which has no rows: see {folder}")
        return _rows_of(folder / artifact.rows)

    @cached_property
    def tables(self) -> Mapping[str, ResultTable]:
        """The tables of the run's report by name, unrounded. Raises ResultsError without one."""
        reports = [name for name, job in self.jobs.items() if job["produces"] == REPORT.name]
        if not reports:
            raise ResultsError(f"{self.name} has no report")
        text = (self.folder(reports[-1]) / TABLES_FILE).read_text(encoding="utf-8")
        return {table.name: table for table in read_tables(text)}

    def _object(self, job: str) -> str:
        return f"{self.jobs[job]['kind']}/{self.jobs[job]['key']}"


def open_run(name: str, store: str | Path | None = None) -> RunResults:
    """The results of a run by its name in `agentc status --all-runs`, of the store that commands
    use here or of another folder. Raises ResultsError."""
    layout = readable_store(None if store is None else str(store))
    plan = RunFolder.of(layout, name).last_plan
    try:
        jobs = json.loads(plan.read_text(encoding="utf-8"))["jobs"]
    except FileNotFoundError:
        names = run_names(layout)
        hint = did_you_mean(name, names) or (f"there are {listed(names)}" if names else "no runs")
        raise ResultsError(f"no run `{name}` in {layout.root}; {hint}") from None
    return RunResults(name, layout, {job["id"]: job for job in jobs})


def _rows_of(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
