"""What a tracker is to the follower: a sink of points, with a run of its own for each curve; and
the names of those runs.

`follow.py` calls it, from one thread; each tracker's program implements it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

HeldSteps = dict[str, set[int]]
"""The steps that a tracker has of each metric."""


@dataclass(frozen=True)
class TrackedRun:
    """A run in a tracker: the curve of one job, or the results of an experiment.

    `id` is 16 hex digits: the same for the same object under the same label, in whichever process.
    `name` is for people, and tells runs of one project apart; `group` is the label of the run of
    the experiment. `config` is JSON.
    """

    id: str
    name: str
    project: str
    group: str
    kind: str
    tags: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict, compare=False)


class TrackerSink(Protocol):
    """Where points go. A sink may raise whatever its library raises: its process ends, and nothing
    else does."""

    def open(self, run: TrackedRun) -> HeldSteps:
        """Begin a run, or go on with one of this id; returns what the tracker has of it. Called
        once before all other calls for that run."""

    def log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        """Points at one step; values may be NaN or infinite. No point comes twice."""

    def send_text(self, run: TrackedRun, title: str, text: str, words: Mapping[str, str]) -> None:
        """A text in Markdown, and the same in single words by name (of verdicts on claims). It
        replaces an earlier one of that title, where the tracker can replace."""

    def finish(self, run: TrackedRun) -> None:
        """The run is complete."""

    def flush(self) -> None:
        """Whatever was logged can be seen now."""

    def close(self) -> None:
        """End of the process; runs that were not finished stay unfinished."""


_SHOWN = 6
"""Digits of a key in a name: they tell two results of one stage apart."""


class Names:
    """Of one plan, under the label of its run."""

    def __init__(self, document: Mapping[str, Any], label: str, project: str) -> None:
        self._label, self._project = label, project
        experiment: Mapping[str, Any] = document.get("experiment") or {}
        self._scale = experiment.get("scale")
        self._about: dict[str, Any] = {
            "experiment": document["name"],
            "scale": self._scale,
            "params": document.get("params") or {},
        }
        self._cells: Mapping[str, Mapping[str, Any]] = experiment.get("cells") or {}
        self._rounds = {
            stage: str(entry["repeat"])
            for entry in experiment.get("rounds") or ()
            for stage in entry["stages"]
        }
        self._paper = (experiment.get("paper") or {}).get("title")

    def of_job(self, job: Mapping[str, Any]) -> TrackedRun:
        """The run of a job's curve: `quickstart@smoke/eto.1.dpo-592c66`."""
        name = f"{job['kind']}/{job['key']}"
        cell = (self._cells.get(job["stage"]) or {}).get("cell") or {}
        about = {
            **self._about,
            "stage": self.series(job["stage"], job.get("round")),
            "round": job.get("round"),
            "kind": job["kind"],
            "backend": job["backend"],
            "object": name,
            "settings": job["config"],
        }
        about["params"] = {**about["params"], **cell}
        return self._run(name, f"{job['id']}-{job['key'][:_SHOWN]}", str(job["kind"]), about)

    def of_results(self, objects: Sequence[str]) -> TrackedRun:
        """The run of what all these objects found: another one where a result was made anew."""
        digest = hashlib.sha256("\n".join(sorted(objects)).encode("utf-8")).hexdigest()
        about = {**self._about, **({"paper": self._paper} if self._paper else {})}
        name = f"results-{digest[:_SHOWN]}"
        return self._run("results/" + digest, name, "results", about)

    def series(self, stage: str, number: Any) -> str:
        """A stage without its round, which is what its points are counted by."""
        repeat = self._rounds.get(stage)
        inner = f"{repeat}.{number}."
        if repeat is None or not stage.startswith(inner):
            return stage
        return f"{repeat}.{stage[len(inner) :]}"

    def _run(self, what: str, name: str, kind: str, about: Mapping[str, Any]) -> TrackedRun:
        tags: list[str] = [kind, *([str(self._scale)] if self._scale else [])]
        identity = f"{self._project}\n{self._label}\n{what}"
        return TrackedRun(
            id=hashlib.sha256(identity.encode("utf-8")).hexdigest()[:16],
            name=f"{self._label}/{name}",
            project=self._project,
            group=self._label,
            kind=kind,
            tags=tuple(tags),
            config=about,
        )
