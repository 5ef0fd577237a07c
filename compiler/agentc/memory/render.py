"""What jobs of a plan need, in words: for `plan`, `cost` and `preflight`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentc.memory.cards import card_bytes, card_label
from agentc.memory.need import gigabytes
from agentc.text import aligned, some, wrapped

_MIB = 2**20
_NAMED = 4
"""Jobs of a group by name; of more it says how many."""
_ANYWHERE_MIB = 8000
"""What Snakemake gives a job at most where nobody says."""


def memory_label(job: Mapping[str, Any]) -> str:
    """For a column: `51.4 of 80.0 GB` of a GPU whose memory is known, `51.4 GB` of another, of
    main memory where the job has none; nothing where nothing is known."""
    memory = job.get("memory")
    if not memory or not _matters(memory):
        return ""
    if not memory["gpus"]:
        return f"{gigabytes(memory['mem_mb'] * _MIB)} GB"
    of = f" of {gigabytes(memory['room'])}" if memory.get("room") else ""
    return f"{gigabytes(memory['device'])}{of} GB"


def memory_share(job: Mapping[str, Any]) -> float:
    """How full a job's GPUs get, to compare jobs by; of less those whose room is not known, and of
    next to nothing those without."""
    memory = job.get("memory") or {"gpus": 0, "mem_mb": 0}
    if not memory["gpus"]:
        return float(memory["mem_mb"]) / 1e18
    room = memory.get("room")
    return float(memory["device"] / room if room else memory["device"] / 1e15)


def on_card(job: Mapping[str, Any], card: str | None) -> Mapping[str, Any]:
    """The job as if its GPUs were of that card, whatever the spec says; None changes nothing."""
    memory, size = job.get("memory"), None if card is None else card_bytes(card)
    if not memory or not memory["gpus"] or size is None:
        return job
    # Only where the spec names a card is it known that a server may fill less than all of it.
    stated = card_bytes(memory["card"]) if memory.get("card") else None
    share = memory["room"] / stated if stated else 1.0
    return {**job, "memory": {**memory, "card": card, "room": share * size}}


def memory_text(jobs: Iterable[Mapping[str, Any]], width: int | None = None) -> str:
    """A line for each group of jobs that need the same, or three where the `width` of a terminal
    is too little; rounds and cells of a sweep are one. Nothing of jobs without GPUs that any
    machine has room for."""
    groups: dict[tuple[str, str], list[str]] = {}
    for job in jobs:
        if job.get("memory") and _matters(job["memory"]):
            name = re.sub(r"\.\d+\.", ".*.", re.sub(r"@[^.:]*", "@*", str(job["id"])))
            names = groups.setdefault((_first(job["memory"]), _second(job["memory"])), [])
            if name not in names:
                names.append(name)
    if not groups:
        return ""
    rows = [(some(names, _NAMED), first, second) for (first, second), names in groups.items()]
    head = "memory, expected at most (1e9 bytes; docs/design/memory.md)"
    lines = aligned(rows, indent="  ")
    if width is not None and max(map(len, lines)) > width:
        lines = [line for row in rows for line in _stacked(row, width)]
    return "\n".join([*wrapped(head, width), *lines]) + "\n"


def _stacked(row: tuple[str, ...], width: int) -> Iterator[str]:
    """Names, needs and summands below each other; a number stays beside its unit."""
    names, *cells = row
    yield from wrapped(names, width, "  ")
    for cell in cells:
        unbroken = re.sub(r"(?<![+,]) (?![+(])", "\N{NO-BREAK SPACE}", cell)
        for line in wrapped(unbroken, width, "      "):
            yield line.replace("\N{NO-BREAK SPACE}", " ")


def _matters(memory: Mapping[str, Any]) -> bool:
    return bool(memory["gpus"]) or memory["mem_mb"] > _ANYWHERE_MIB


def _first(memory: Mapping[str, Any]) -> str:
    main = f"{gigabytes(memory['mem_mb'] * _MIB)} GB of main memory"
    if not memory["gpus"]:
        return main
    each = f"{gigabytes(memory['device'])} GB of each GPU"
    if memory.get("room"):
        room = gigabytes(memory["room"])
        each += f" ({card_label(memory['card'])} has {room} for it)"
    return f"{each}, {main}"


def _second(memory: Mapping[str, Any]) -> str:
    parts = sorted(memory["parts"].items(), key=lambda part: -part[1])
    return " + ".join(f"{gigabytes(size)} {name}" for name, size in parts[:4])
