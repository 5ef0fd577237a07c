"""Reads the objects that a report is about: manifests, facts, rows, training logs.

A job sees only data directories; everything else of an object lies beside them in the store:
`<kind>/<key>/{artifact.json,data,logs}`. Objects that no stage names (the rollout inside an
evaluation) are found through the manifests of those that do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import PAIRS_FILE, ROWS_FILE, STEP_LOG_FILE, TRAJECTORIES_FILE


@dataclass(frozen=True)
class ExperimentJob:
    """One job of the experiment with what it left. `name` is the stage's id, or `<stage>:<kind>`
    for an inner job of a stage. `parents` are (role, object) pairs."""

    name: str
    object: str
    manifest: Mapping[str, Any]
    folder: Path
    round: int | None = None

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def type(self) -> str:
        return str(self.manifest["type"])

    @property
    def parents(self) -> list[tuple[str, str]]:
        found: Mapping[str, Sequence[str]] = self.manifest.get("inputs") or {}
        return [(role, name) for role, names in found.items() for name in names]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of a row artifact; empty for others."""
        for name in (TRAJECTORIES_FILE, PAIRS_FILE, ROWS_FILE):
            path = self.folder / "data" / name
            if path.is_file():
                return read_lines(path)
        return []

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The training log: one line for each logged step."""
        path = self.folder / "logs" / STEP_LOG_FILE
        return read_lines(path) if path.is_file() else []

    def document(self, name: str) -> dict[str, Any]:
        """A JSON file of the artifact."""
        value: dict[str, Any] = json.loads((self.folder / "data" / name).read_text("utf-8"))
        return value

    @cached_property
    def logs(self) -> tuple[Path, ...]:
        """The logs of the job and its servers that hold anything."""
        return written_logs(self.folder)


@dataclass(frozen=True)
class Session:
    """Servers that several jobs shared: their manifest, and the folder with their logs."""

    manifest: Mapping[str, Any]
    folder: Path

    @property
    def members(self) -> frozenset[str]:
        """The objects of its jobs."""
        return frozenset(map(str, (self.manifest.get("members") or {}).values()))


def written_logs(folder: Path) -> tuple[Path, ...]:
    """Logs of an object that are not empty, the program's own first."""
    found = [path for path in folder.glob("logs/*.*") if path.is_file() and path.stat().st_size]
    return tuple(sorted(found, key=lambda path: (path.name != "log.txt", path.name)))


@dataclass(frozen=True)
class Collection:
    """Every job that the report knows, parents before children, and the sessions of servers."""

    nodes: tuple[ExperimentJob, ...]
    by_object: Mapping[str, ExperimentJob] = field(default_factory=dict)
    sessions: tuple[Session, ...] = ()

    def of_type(self, *types: str) -> list[ExperimentJob]:
        return [node for node in self.nodes if node.type in types]


def collect(
    inputs: Mapping[str, Sequence[Path]], rounds: Iterable[Mapping[str, Any]]
) -> Collection:
    """The objects at the given data directories and all that they were made from.

    `inputs` maps stage ids to data directories; `rounds` are those of the experiment's facts.
    """
    round_of = {stage: entry["round"] for entry in rounds for stage in entry["stages"]}
    found: dict[str, ExperimentJob] = {}
    stages: dict[str, str] = {}
    inside: dict[str, str] = {}
    roots: set[Path] = set()
    for stage, folders in inputs.items():
        for data in folders:
            name = f"{data.parent.parent.name}/{data.parent.name}"
            roots.add(data.parents[2])
            stages.setdefault(name, stage)
    pending = list(stages)
    while pending:
        name = pending.pop(0)
        if name in found:
            continue
        stage = stages.get(name) or inside[name]
        manifest = _manifest(name, roots)
        if manifest is None:
            continue
        value = json.loads(manifest.read_text("utf-8"))
        # A job within a stage is called as in the plan, after the stage that is shown here.
        within = "" if name in stages else f":{_part(value, name)}"
        node = ExperimentJob(
            f"{stage}{within}", name, value, manifest.parent, round_of.get(stage)
        )  # fmt: skip
        found[name] = node
        for _, parent in node.parents:
            inside.setdefault(parent, stage)
            pending.append(parent)
    return Collection(_ordered(found), found, tuple(_sessions(roots, found)))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSONL file; a line that is no JSON (a log cut off) is left out."""
    return list(iterate_lines(path))


def iterate_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The same rows, one at a time."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def _manifest(name: str, roots: Iterable[Path]) -> Path | None:
    places = (root / name / "artifact.json" for root in roots)
    return next((place for place in places if place.is_file()), None)


def _sessions(roots: Iterable[Path], found: Mapping[str, ExperimentJob]) -> Iterator[Session]:
    """A session is no input of anything: it is known by its members. A job names the servers that
    it used, so a store without any is not searched."""
    if not any(node.manifest.get("leases") for node in found.values()):
        return
    for root in sorted(roots):
        for path in sorted(root.glob("session/*/artifact.json")):
            manifest = json.loads(path.read_text("utf-8"))
            session = Session(manifest, path.parent)
            if not session.members.isdisjoint(found):
                yield session


def _part(manifest: Mapping[str, Any], name: str) -> str:
    """What a job is called within its stage: `reference` of `ranked:reference`, else its kind."""
    return str(manifest.get("id", "")).partition(":")[2] or name.split("/")[0]


def _ordered(found: Mapping[str, ExperimentJob]) -> tuple[ExperimentJob, ...]:
    """Parents first; otherwise as the experiment lists them."""
    result: dict[str, ExperimentJob] = {}

    def visit(name: str) -> None:
        node = found.get(name)
        if node is None or name in result:
            return
        for _, parent in node.parents:
            visit(parent)
        result[name] = node

    for name in found:
        visit(name)
    return tuple(result.values())


def anchor(node: ExperimentJob) -> str:
    """The id of a job's place in the page."""
    return "job-" + node.object.replace("/", "-")
