"""Submissions that SLURM refused, in words: which jobs, SLURM's reason, and the setting that it
means with the place that it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentc.placement import Requests, ResolvedRequest, read_requests, resolve_placement
from agentc.placement.precedence import UNSAID
from agentc.placement.profile import Profile
from agentc.plan.work import Work
from agentc.text import counted

_REASON = re.compile(
    r"SLURM sbatch failed(?: for array job submission \((?P<tasks>[^)\n]*)\))?\. "
    r"The error message was '(?P<said>.*?)'\.\n|"
    r"(?:Job|Array job) submission failed with exception: (?P<raised>.*?)"
    r"(?=For further error details|\n    jobid:|\n    sbatch call:|\nException in |\Z)",
    re.DOTALL,
)
_BLOCK = re.compile(
    r"^Error in rule \w+:\n    message: (?P<message>.*?)\n    output: \S*?/objects/"
    r"(?P<unit>[a-z_]+/[0-9a-f]{32})/artifact\.json",
    re.MULTILINE | re.DOTALL,
)
_PART = re.compile(r"Part of failed array sbatch submission \((?P<tasks>[^)\n]*)\)")
_NOISE = re.compile(r"\b(?:sbatch|srun): (?:error|fatal): ")
_BATCH = "Batch job submission failed: "
_MEANT: Mapping[str, tuple[str, ...]] = {
    r"partition (?:name )?specified|[Ii]nvalid partition": ("partition",),
    r"account/partition combination": ("account", "partition"),
    r"[Aa]ccount": ("account",),
    r"\bqos\b|\bQOS specification": ("qos",),
    r"feature specification|[Ii]nvalid constraint": ("constraint",),
    r"[Mm]emory specification": ("mem_mb",),
    r"time limit is invalid|[Tt]ime limit exceeds": ("minutes",),
    r"generic resource|\bgres\b": ("gpus", "gpu_type"),
    r"[Nn]ode count": ("nodes",),
    r"CPU count": ("cpus",),
    r"node configuration is not available": (
        *("partition", "constraint", "nodes", "gpus", "gpu_type", "cpus", "mem_mb"),
    ),
    r"violates accounting/QOS policy": ("account", "qos", "minutes", "cpus", "gpus", "mem_mb"),
}
"""Settings of placement that SLURM's words are about; of several patterns the first holds."""
_FEW = 3


@dataclass(frozen=True, slots=True)
class RefusedJobs:
    """A reason of SLURM's, and the objects whose jobs it refused for that."""

    reason: str
    units: tuple[str, ...]


def read_refused(log: str) -> tuple[RefusedJobs, ...]:
    """Jobs that were refused, by SLURM's reason, from the log of Snakemake's plugin."""
    arrays = {match["tasks"]: _reason(match) for match in _REASON.finditer(log) if match["tasks"]}
    found: dict[str, list[str]] = {}
    for block in _BLOCK.finditer(log):
        message = block["message"] + "\n"
        own = _REASON.search(message)
        part = _PART.search(message)
        if own is not None:
            found.setdefault(_reason(own), []).append(block["unit"])
        elif part is not None and part["tasks"] in arrays:
            found.setdefault(arrays[part["tasks"]], []).append(block["unit"])
    return tuple(
        RefusedJobs(reason, tuple(dict.fromkeys(units))) for reason, units in found.items()
    )


def describe_refusals(log: Path, work: Work, profile: Profile | None) -> list[str]:
    """A paragraph for each reason for which SLURM refused jobs of a run."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    refused = read_refused(text) if "submission" in text or "sbatch failed" in text else ()
    if not refused or profile is None:
        return []
    requests = read_requests(profile)
    settled = {each.object: each for each in resolve_placement(work.document, requests)}
    return ["\n".join(_paragraph(each, settled, requests)) for each in refused]


def _paragraph(
    refused: RefusedJobs, settled: Mapping[str, ResolvedRequest], requests: Requests
) -> Iterator[str]:
    jobs = [job for unit, job in settled.items() if unit in refused.units]
    labels = [job.label for job in jobs] or list(refused.units)
    more = f" and {counted(len(labels) - _FEW, 'other job')}" if len(labels) > _FEW else ""
    yield f"SLURM refused {', '.join(labels[:_FEW])}{more}: {refused.reason}"
    lines = dict.fromkeys(line for job in jobs for line in _sources(refused.reason, job, requests))
    yield from (f"  {line}" for line in lines)
    yield (
        f"  `agentc plan --preflight SPEC --profile {requests.profile.name}` says what the cluster"
        " has and takes"
    )


def _sources(reason: str, job: ResolvedRequest, requests: Requests) -> Iterator[str]:
    """Settings that the reason is about, with the places that they come from."""
    names = next((names for words, names in _MEANT.items() if re.search(words, reason)), ())
    silent = []
    for name in names:
        placed = job.placed[name]
        if placed.value is None:
            silent.append(name)
        elif placed.value and not placed.source.endswith("default") and placed.source not in UNSAID:
            yield f"{name} {placed.value} comes from {_place(placed.source, requests)}"
    if silent and len(silent) == len(names):
        yield (
            f"no {' and no '.join(silent)} is set: {'they are' if silent[1:] else 'it is'} the"
            + (" cluster's default")
        )


def _place(source: str, requests: Requests) -> str:
    if source.startswith(("default-resources", "set-resources", "set-threads", "slurm-")):
        return f"{source} of {requests.profile.file}"
    return source


def _reason(match: re.Match[str]) -> str:
    """SLURM's words once, without the names of its commands."""
    text = match["said"] or (match["raised"] or "").partition("\n    ")[0]
    parts = [_NOISE.sub("", line).strip() for line in text.splitlines()]
    found = "; ".join(dict.fromkeys(part.removeprefix(_BATCH) for part in parts if part))
    return found.replace(":; ", ": ")
