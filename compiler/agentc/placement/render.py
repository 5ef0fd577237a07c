"""Settled placement as text for people and as JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.kinds.field import Json
from agentc.placement.precedence import NAMES, UNSAID, Placed, ResolvedRequest
from agentc.placement.profile import Profile
from agentc.text import aligned, format_duration

_ROUND = re.compile(r"\.\d+\.")
_CELL = re.compile(r"@[^.:]*")


def placement_text(settled: Sequence[ResolvedRequest], profile: Profile) -> str:
    """What every queued job requests alike, then a block for each group of jobs that request the
    same amounts."""
    executor = "this machine" if profile.executor == "local" else profile.executor
    lines = [f"placement with the profile {profile.name} ({profile.file}; runs on: {executor})"]
    groups = _groups([each for each in settled if not each.local])
    common = set.intersection(*(set(group.rows) for group in groups)) if len(groups) > 1 else set()
    if common:
        lines.append("  all queued jobs")
        lines += aligned([row for row in groups[0].rows if row in common], indent="    ")
    for group in groups:
        rules = f"(rule{'s' * (len(group.rules) > 1)} {', '.join(group.rules)})"
        lines.append(f"  {', '.join(group.names)}   {rules}")
        lines += aligned([row for row in group.rows if row not in common], indent="    ")
    for source, names in _local(settled).items():
        lines.append(f"  {', '.join(names)}")
        lines.append(f"    on the submit host, not in the queue ({source})")
    return "\n".join(lines) + "\n"


def placement_document(settled: Iterable[ResolvedRequest], profile: Profile) -> dict[str, Json]:
    """The same for programs, job by job."""
    return {
        "profile": profile.name,
        "executor": profile.executor,
        "jobs": {
            str(job["id"]): {
                "rule": each.rule,
                **({"local": True, "local_from": each.local_source} if each.local else {}),
                **{name: _entry(placed) for name, placed in each.placed.items()},
            }
            for each in settled
            for job in each.jobs
        },
    }


def _entry(placed: Placed) -> dict[str, Json]:
    return {
        "value": placed.value,
        "from": placed.source,
        "instead_of": [{"value": lost.value, "from": lost.source} for lost in placed.rejected],
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """Jobs that request the same amounts; a row is a name, an amount and where it comes from."""

    names: list[str]
    rules: list[str]
    rows: list[tuple[str, str, str]]


def _groups(settled: Iterable[ResolvedRequest]) -> list[_Group]:
    """Rounds and cells of a sweep that request alike are one: `eto.*.dpo`."""
    alike: dict[tuple[object, ...], list[ResolvedRequest]] = {}
    for each in settled:
        amounts = tuple(
            each.placed[name].value if _matters(name, each.placed[name]) else None for name in NAMES
        )
        alike.setdefault(amounts, []).append(each)
    return [
        _Group(
            names=list(dict.fromkeys(_folded(job) for each in requests for job in each.jobs)),
            rules=list(dict.fromkeys(each.rule for each in requests)),
            rows=[
                (name, _amount(name, placed), sources)
                for name, placed in requests[0].placed.items()
                if _matters(name, placed)
                for sources in [
                    ", ".join(dict.fromkeys(_why(each.placed[name]) for each in requests))
                ]
            ],
        )
        for requests in alike.values()
    ]


def _folded(job: Mapping[str, Any]) -> str:
    return _ROUND.sub(".*.", _CELL.sub("@*", str(job["id"])))


def _amount(name: str, placed: Placed) -> str:
    """With its unit, where it is a number."""
    if placed.number is None or name not in ("mem_mb", "minutes"):
        return str(placed.value)
    if name == "mem_mb":
        return f"{placed.number} MiB"
    return f"{placed.number} min" + (
        f" ({format_duration(60 * placed.number)})" if placed.number > 99 else ""
    )


def _local(settled: Iterable[ResolvedRequest]) -> dict[str, list[str]]:
    """Jobs that stay on the submit host, by who says so."""
    found: dict[str, list[str]] = {}
    for each in settled:
        for job in each.jobs if each.local else ():
            name = _folded(job)
            if name not in found.setdefault(each.local_source, []):
                found[each.local_source].append(name)
    return found


def _matters(name: str, placed: Placed) -> bool:
    """Whether anybody says something; the number of cpus is always of interest."""
    return placed.value is not None and (name == "cpus" or placed.source not in UNSAID)


def _why(placed: Placed) -> str:
    lost = ", ".join(f"{each.value} of {each.source}" for each in placed.rejected)
    return f"{placed.source}, not {lost}" if lost else placed.source
