"""What lies where a spec names a file that is not there: a folder, or a file of nearly that name.

Only names within the boundary of the spec are read, and a bounded number of them.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path, PurePath

from agentc.diagnostics.suggest import distance
from agentc.source.boundary import Boundary, OutsideError
from agentc.source.read import is_directory, is_file

_MOST_NAMES = 500


def nearest_file(written: str, boundary: Boundary) -> str | None:
    """The path, as a spec would have it, of the file that was probably meant: each part that does
    not exist is replaced by the nearest name beside it. A folder leads to its only file; a lone
    name is also looked for one folder below."""
    try:
        place = boundary.find(written)
        folder = boundary.find(str(PurePath(written).anchor or "."))
    except OutsideError:
        return None
    if is_directory(place):
        files = [name for name in _names(place) if is_file(place / name)]
        return str(PurePath(written) / files[0]) if len(files) == 1 else None
    found = PurePath(PurePath(written).anchor)
    for part in PurePath(written).parts[1 if found.anchor else 0 :]:
        name = part if os.path.lexists(folder / part) else _nearest(part, folder)
        if name is None:
            return _below(written, boundary)
        folder, found = folder / name, found / name
    return str(found) if is_file(folder) and boundary.holds(folder) else None


def is_folder(written: str, boundary: Boundary) -> bool:
    """Whether a path of the spec leads to a folder."""
    try:
        return is_directory(boundary.find(written))
    except OutsideError:
        return False


def _below(written: str, boundary: Boundary) -> str | None:
    """A file of exactly that name in one folder beside the spec."""
    if len(PurePath(written).parts) != 1:
        return None
    for name in _names(boundary.directory):
        if is_file(boundary.directory / name / written) and boundary.holds(
            boundary.directory / name / written
        ):
            return str(PurePath(name) / written)
    return None


def _nearest(part: str, folder: Path) -> str | None:
    word = part.lower()
    limit = 1 if len(word) <= 4 else 2 if len(word) <= 8 else 3
    near = ((distance(word, name.lower(), limit), name) for name in _names(folder))
    best = min(near, default=(limit + 1, ""))
    return best[1] if best[0] <= limit else None


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in islice(entries, _MOST_NAMES)]
    except (OSError, ValueError):
        return []
    return sorted(name for name in names if not name.startswith("."))
