"""How SLURM ended jobs of a run, read from the log of Snakemake's plugin: causes and remedies for
people, and which jobs are worth another submission."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.plan.work import Work, object_of
from agentc.runtime.layout import StoreLayout

SUBMISSIONS = 10
"""Of one job at most, within one `agentc run`."""

_SUBMITTED = re.compile(r"SLURM jobid (\d+) \(log: \S*/rule_([a-z_]+)/([0-9a-f]{32})/")
_ENDED = re.compile(r"SLURM-job '(\d+)' failed.*?SLURM status is:\s*'([A-Z_]+)'", re.DOTALL)
_REMEDIES = {
    "TIMEOUT": "its time limit was over; raise `placement: {minutes: ...}` of the stage, or"
    " `runtime` in the profile",
    "DEADLINE": "its deadline was over",
    "OUT_OF_MEMORY": "it used more memory than it had asked for; raise `placement: {mem_mb: ...}`"
    " of the stage, or `mem_mb` in the profile",
    "NODE_FAIL": "its node failed; `slurm-requeue: true` in the profile lets SLURM start it again",
    "BOOT_FAIL": "its node did not start",
    "PREEMPTED": "a job of higher priority took its place; `slurm-requeue: true` in the profile"
    " lets SLURM start it again",
    "CANCELLED": "somebody cancelled it",
}
_AGAIN = ("TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED")


@dataclass(frozen=True, slots=True)
class Ending:
    """A SLURM job that did not complete: its number, the object that it was making, SLURM's word
    for how it ended."""

    number: str
    unit: str
    status: str

    @property
    def cause(self) -> str:
        """What that means and what would mend it."""
        return _REMEDIES.get(self.status, "see its log")

    @property
    def again(self) -> bool:
        """Whether it is the cluster's doing: a new submission goes on where it was cut off."""
        return self.status in _AGAIN


def read_endings(log: str) -> tuple[Ending, ...]:
    """Jobs that the plugin reported as failed."""
    units = {number: f"{rule}/{key}" for number, rule, key in _SUBMITTED.findall(log)}
    found = dict(_ENDED.findall(log))
    return tuple(
        Ending(number, units[number], status) for number, status in found.items() if number in units
    )


def describe(log: Path, work: Work) -> list[str]:
    """A sentence for each job that SLURM, not its own program, brought to an end."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [
        f"SLURM ended job {ending.number} ({', '.join(ids_of(ending, work))}) with"
        f" {ending.status}: {ending.cause}"
        for ending in read_endings(text)
        if ending.status in _REMEDIES
    ]


def ids_of(ending: Ending, work: Work) -> list[str]:
    """Jobs of the plan that the SLURM job was making."""
    kind, key = ending.unit.split("/")
    if kind == "session":
        sessions: Iterable[Mapping[str, Any]] = work.document.get("sessions") or []
        return [member for s in sessions if s["key"] == key for member in s["members"]]
    return [str(job["id"]) for job in work.missing if object_of(job) == ending.unit]


def progress_of(ending: Ending, work: Work) -> float:
    """How far the jobs of a submission had come, in the units that their programs count."""
    by_id = {job["id"]: object_of(job) for job in work.document["jobs"]}
    return sum(_done(work.layout, by_id[name]) for name in ids_of(ending, work))


def _done(layout: StoreLayout, name: str) -> float:
    if layout.is_published(name):
        return float("inf")
    try:
        text = (layout.staging(name) / "progress.json").read_text(encoding="utf-8")
        return float(json.loads(text)["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
