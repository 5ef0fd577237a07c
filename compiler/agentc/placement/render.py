"""Settled placement as text for people and as JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from agentc.kinds.field import Json
from agentc.placement.precedence import NAMES, UNSAID, Placed, ResolvedRequest
from agentc.placement.profile import Profile
from agentc.text import aligned

_ROUND = re.compile(r"\.\d+\.")
_CELL = re.compile(r"@[^.:]*")


def placement_text(settled: Sequence[ResolvedRequest], profile: Profile) -> str:
    """A block for each group of jobs that ask for the same from the same hands."""
    executor = "this machine" if profile.executor == "local" else profile.executor
    lines = [f"placement with the profile {profile.name} ({profile.file}; runs on: {executor})"]
    for names, rule, placed in _groups(each for each in settled if not each.local):
        lines.append(f"  {', '.join(names)}   (rule {rule})")
        rows = [
            (name, str(each.value), _why(each))
            for name, each in placed.items()
            if _matters(name, each)
        ]
        lines += aligned(rows, indent="    ")
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


def _groups(
    settled: Iterable[ResolvedRequest],
) -> list[tuple[list[str], str, Mapping[str, Placed]]]:
    """Rounds and cells of a sweep that ask alike are one: `eto.*.dpo`."""
    found: dict[tuple[str, tuple[Placed, ...]], tuple[list[str], str, Mapping[str, Placed]]] = {}
    for each in settled:
        key = (each.rule, tuple(each.placed[name] for name in NAMES))
        names, _, _ = found.setdefault(key, ([], each.rule, each.placed))
        for job in each.jobs:
            name = _ROUND.sub(".*.", _CELL.sub("@*", str(job["id"])))
            if name not in names:
                names.append(name)
    return list(found.values())


def _local(settled: Iterable[ResolvedRequest]) -> dict[str, list[str]]:
    """Jobs that stay on the submit host, by who says so."""
    found: dict[str, list[str]] = {}
    for each in settled:
        for job in each.jobs if each.local else ():
            name = _ROUND.sub(".*.", _CELL.sub("@*", str(job["id"])))
            if name not in found.setdefault(each.local_source, []):
                found[each.local_source].append(name)
    return found


def _matters(name: str, placed: Placed) -> bool:
    """Whether anybody says something; the number of cpus is always of interest."""
    return placed.value is not None and (name == "cpus" or placed.source not in UNSAID)


def _why(placed: Placed) -> str:
    lost = ", ".join(f"{each.value} of {each.source}" for each in placed.rejected)
    return f"{placed.source}, not {lost}" if lost else placed.source
