"""Tail: the new lines of a file that grows, is cut back when its job resumes, and moves from
staging to its object when it is published.

Neighbours: `points.py` reads the lines, `follow.py` says where the file is.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO


class Tail:
    """Reads whole lines only: what follows the last newline is being written."""

    def __init__(self) -> None:
        self._offset = 0
        self._last = b""

    def read(self, path: Path) -> list[bytes]:
        """The lines since the last call, of the file where it lies now. All of them again, where
        what was read is no longer there: a resumed job has dropped the lines that it repeats.
        None of a file that is not there, or cannot be read at this moment."""
        try:
            with path.open("rb") as file:
                if not self._goes_on(file):
                    self._offset, self._last = 0, b""
                file.seek(self._offset)
                new = file.read()
        except OSError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        if not whole:
            return []
        lines = whole.splitlines(keepends=True)
        self._offset += len(whole)
        self._last = lines[-1]
        return lines

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the last line that was read still ends where it ended."""
        file.seek(self._offset - len(self._last))
        return file.read(len(self._last)) == self._last
