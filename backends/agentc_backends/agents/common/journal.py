"""The append-only record of finished rows, from which a job that was cut off continues.

One row a line of a file in `work/`: an episode, or a search tree. A line cut off by a kill is
dropped; a row that ended in an infrastructure error does not count as finished. Rows are read from
there when they are asked for: some stages have more of them than memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Identity: TypeAlias = tuple[Any, ...]


class StoredRows(Sequence[Row]):
    """Rows of a JSONL file, by the places where their lines begin."""

    def __init__(self, path: Path, places: Sequence[int]) -> None:
        self._path, self._places = path, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: Any) -> Any:
        with self._path.open("rb") as lines:
            lines.seek(self._places[number])
            return json.loads(lines.readline())

    def __iter__(self) -> Iterator[Row]:
        with self._path.open("rb") as lines:
            for place in self._places:
                lines.seek(place)
                yield json.loads(lines.readline())


def stored_rows(path: Path) -> StoredRows:
    """All rows of a JSONL file that does not change."""
    return StoredRows(path, [place for place, line in _lines(path) if line.strip()])


class FinishedRows(Mapping[Identity, Row]):
    """Rows of a journal, by the values of the fields that tell rows apart."""

    def __init__(self, path: Path, places: Mapping[Identity, int]) -> None:
        self._path, self._places = path, places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Identity]:
        return iter(self._places)

    def __getitem__(self, identity: Identity) -> Row:
        row: Row = StoredRows(self._path, [self._places[identity]])[0]
        return row


class Journal:
    """Open it once, as a context manager; `finished` holds the rows of earlier attempts."""

    def __init__(self, path: Path, fields: Sequence[str] = ("task_id", "attempt")) -> None:
        self._path = path
        self._fields = fields
        self._places: dict[Identity, int] = {}
        self.finished: Mapping[Identity, Row] = {}

    def __enter__(self) -> Journal:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch()
        self._recover()
        self.finished = FinishedRows(self._path, dict(self._places))
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
        self._places[self._identity(row)] = self._out.tell()
        self._out.write(line.encode() + b"\n")
        self._out.flush()

    def rows(self, identities: Sequence[Identity]) -> StoredRows:
        """Their rows, of this attempt or an earlier one."""
        return StoredRows(self._path, [self._places[identity] for identity in identities])

    def _identity(self, row: Row) -> Identity:
        return tuple(row[field] for field in self._fields)

    def _recover(self) -> None:
        """Notes the places of finished rows. Cuts an unfinished last line off the file, so that the
        next row does not continue it. Raises ValueError at a broken line before the last."""
        for number, (place, line) in enumerate(_lines(self._path), start=1):
            if not line.endswith(b"\n"):
                with self._path.open("r+b") as out:
                    out.truncate(place)
                return
            try:
                row = json.loads(line)
                identity = self._identity(row)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"line {number} of {self._path.name} is damaged") from error
            if row["end"] != "error":
                self._places[identity] = place


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with the place where it begins."""
    place = 0
    with path.open("rb") as lines:
        for line in lines:
            yield place, line
            place += len(line)
