"""The append-only record of finished episodes, from which a job that was cut off continues.

One row a line in `work/episodes.jsonl`. A line cut off by a kill is dropped; an episode that ended
in an infrastructure error does not count as finished.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

Row: TypeAlias = dict[str, Any]


class Journal:
    """Open it once, as a context manager; `finished` holds the rows of earlier attempts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.finished: dict[tuple[str, int], Row] = {}

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

    def append(self, row: Row) -> None:
        """Add a row; it has left the process when this returns."""
        line = json.dumps(row, ensure_ascii=False, sort_keys=True)
        self._out.write(line.encode() + b"\n")
        self._out.flush()

    def _recover(self) -> dict[tuple[str, int], Row]:
        """Rows by (task, attempt). Cuts an unfinished last line off the file, so that the next row
        does not continue it. Raises ValueError at a broken line before the last."""
        if not self._path.exists():
            return {}
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self._path.open("r+b") as out:
                out.truncate(len(whole))
        rows: dict[tuple[str, int], Row] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                row = json.loads(line)
                identity = (row["task_id"], row["attempt"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"line {number} of {self._path.name} is damaged") from error
            if row["end"] != "error":
                rows[identity] = row
        return rows
