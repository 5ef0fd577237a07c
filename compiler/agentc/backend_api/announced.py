"""What installed distributions announce under an entry-point group.

The metadata is read as it lies in the folders on the path (packaging.python.org, "Entry points
specification"): importlib.metadata, which reads it too, brings along email and socket, and every
command would wait for them longer than for its backends.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from itertools import takewhile
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Announcement:
    """`name = value` of a distribution's entry_points.txt; `value` is `module:attribute`."""

    name: str
    value: str
    metadata: Path
    """The distribution's folder of metadata: `acme-1.2.dist-info`."""

    def load(self) -> object:
        """What it means. Raises whatever the module raises, or AttributeError."""
        module, _, attribute = self.value.partition("[")[0].partition(":")
        names = filter(None, attribute.strip().split("."))
        return reduce(getattr, names, import_module(module.strip()))

    @property
    def owner(self) -> str:
        """Name and version of the distribution, as the headers of its metadata say them."""
        for file in ("METADATA", "PKG-INFO"):
            lines = _lines(self.metadata / file)
            headers = dict(line.partition(": ")[::2] for line in takewhile(bool, lines))
            if {"Name", "Version"} <= headers.keys():
                return f"{headers['Name']} {headers['Version']}"
        return self.metadata.name


def announced(group: str) -> list[Announcement]:
    """All of a group, by name. Of two installations of one distribution the first on the path
    counts, which is the one that Python imports."""
    found: dict[str, list[Announcement]] = {}
    for folder in dict.fromkeys(sys.path):
        for metadata in _metadata_of(Path(folder)):
            # `acme.agents-1.2.dist-info` and `acme_agents-1.1.dist-info` are one distribution.
            name = re.sub("[-_.]+", "-", metadata.stem.partition("-")[0]).lower()
            if name not in found:
                found[name] = list(_read(metadata, group))
    announcements = (each for listed in found.values() for each in listed)
    return sorted(announcements, key=lambda each: (each.name, each.value))


def _metadata_of(folder: Path) -> list[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in inside if path.name.endswith((".dist-info", ".egg-info"))]


def _read(metadata: Path, group: str) -> Iterator[Announcement]:
    section = ""
    for line in _lines(metadata / "entry_points.txt"):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield Announcement(name.strip(), value.strip(), metadata)


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, ValueError):
        return []
