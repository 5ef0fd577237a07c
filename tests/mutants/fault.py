"""Seeded faults: what each changes in the source, what that breaks for a user, and who sees it.

The list is `faults/*.yaml`, a file for each part. `trial.py` runs tests on a copy that has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parent / "faults"
_KEYS = frozenset({"id", "breaks", "file", "old", "new", "tests"})


class FaultError(ValueError):
    """The list has to be mended: it does not fit the source any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`old`, which occurs once in `file`, becomes `new`; each of `tests` (files or node ids) then
    fails. `breaks` says in a sentence what a user would meet."""

    id: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The file's text with the fault in it. Raises FaultError."""
        count = text.count(self.old)
        if count != 1:
            raise FaultError(f"{self.id}: `old` occurs {count} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def read_faults(folder: Path = FOLDER) -> tuple[Fault, ...]:
    """All of them, in the order of the files. Raises FaultError."""
    found: list[Fault] = []
    for path in sorted(folder.glob("*.yaml")):
        for number, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), 1):
            if not isinstance(entry, dict) or set(entry) != _KEYS:
                keys = ", ".join(sorted(_KEYS))
                raise FaultError(f"{path.name}: entry {number} does not have exactly {keys}")
            found.append(Fault(**{**entry, "tests": tuple(entry["tests"])}))
    return tuple(found)
