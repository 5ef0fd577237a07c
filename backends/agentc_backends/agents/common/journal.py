"""The append-only record of finished rows, from which a job that was cut off continues.

One row a line of a file in `work/`: an episode, or a search tree. A line cut off by a kill is
dropped; a row that ended in an infrastructure error does not count as finished.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Identity: TypeAlias = tuple[Any, ...]


class Journal:
    """Open it once, as a context manager; `finished` holds the rows of earlier attempts, by the
    values of the fields that tell rows apart."""

    def __init__(self, path: Path, fields: Sequence[str] = ("task_id", "attempt")) -> None:
        self._path = path
        self._fields = fields
        self.finished: dict[Identity, Row] = {}

    def __enter__(self) -> Journal:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.finished = self._recover()
        self._out: IO[bytes] = self._path.open("ab")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._out.close()

    def identity(self, row: Row) -> Identity:
        """What tells a row from others."""
        return tuple(row[field] for field in self._fields)

    def append(self, row: Row) -> None:
        """Add a row; it has left the process when this returns."""
        line = json.dumps(row, ensure_ascii=False, sort_keys=True)
        self._out.write(line.encode() + b"\n")
        self._out.flush()

    def _recover(self) -> dict[Identity, Row]:
        """Rows by identity. Cuts an unfinished last line off the file, so that the next row
        does not continue it. Raises ValueError at a broken line before the last."""
        if not self._path.exists():
            return {}
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self._path.open("r+b") as out:
                out.truncate(len(whole))
        rows: dict[Identity, Row] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                row = json.loads(line)
                identity = self.identity(row)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"line {number} of {self._path.name} is damaged") from error
            if row["end"] != "error":
                rows[identity] = row
        return rows
