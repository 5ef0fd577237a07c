"""A look at a local file while a spec is compiled: the first record that cannot be read, and how
many rows there are. The work is bounded; the job reads all of the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from agentc.kinds.models import RecordReading
from agentc_backends.data.datasets.conversations import RowReader, messages_of
from agentc_backends.data.datasets.records import (
    SIGNATURE_BYTES,
    DataRecord,
    DatasetError,
    ignore_advice,
    not_utf8,
    record_of_line,
    records_of_list,
    require_text,
)

MOST_RECORDS = 5_000
MOST_BYTES = 4 << 20
"""Bounds of what is read. The rest of a file counts by its lines, or, of one JSON list, by its
size."""
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Survey:
    """`rows` of the whole file (an estimate where it is long), mean `characters` of a row, replies
    that are `marked` as not trained in what was read, and `trouble`, the first error, with which
    the job would end."""

    rows: int = 0
    characters: float = 0.0
    marked: int = 0
    trouble: DatasetError | None = None


def survey(path: Path, rules: RecordReading) -> Survey:
    """What the beginning of a file holds under these rules. Files that are asked about again, as
    each stage is by every pass that lowers it, are read once."""
    try:
        stat = path.stat()
    except OSError:
        return Survey()
    # Limit and seed choose among rows that were read.
    rules = replace(rules, limit=None, seed=0, ignore_fields=tuple(rules.ignore_fields))
    return _survey(path, stat.st_size, stat.st_mtime_ns, rules)


@lru_cache(maxsize=64)
def _survey(path: Path, size: int, _changed: int, rules: RecordReading) -> Survey:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
            is_list = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
            whole = len(data) == size
            lines = data.count(b"\n")
            while not is_list and (piece := file.read(_PIECE)):
                lines += piece.count(b"\n")
    except OSError:
        return Survey()
    reader = RowReader(path.name, rules)
    rows = characters = records = 0
    first: DatasetError | None = None
    unread: dict[str, None] = {}
    try:
        for record in _records(data, path.name, is_list=is_list, whole=whole):
            records += 1
            if records <= MOST_RECORDS:
                try:
                    row = reader.row(record)
                except DatasetError as error:
                    if not error.unread:
                        raise
                    # One message for the fields of all records that are read.
                    first = first or error
                    unread |= dict.fromkeys(error.unread)
                    continue
                if row is not None:
                    rows += 1
                    characters += sum(len(message["content"]) for message in messages_of(row))
            if records == MOST_RECORDS and not is_list:
                records += max(0, lines - record.line)
                break
        else:
            if not whole:
                records = records * size // len(data) if is_list else max(records, lines, 1)
        if first is not None:
            raise first
        if reader.counts.records == records:
            reader.require_rows(rows)
            reader.require_ignored()
    except DatasetError as error:
        return Survey(trouble=error if first is None else _with_names(first, [*unread], rules))
    share = rows / max(1, reader.counts.records)
    return Survey(round(records * share), characters / max(1, rows), reader.counts.marked)


def _with_names(error: DatasetError, unread: list[str], rules: RecordReading) -> DatasetError:
    """The first error about fields, with those of other records."""
    others = ", ".join(f"`{name}`" for name in unread if name not in error.unread)
    more = f"; other records have {others}" if others else ""
    return DatasetError(error.reason + more, ignore_advice(unread, rules.ignore_fields))


def _records(data: bytes, file: str, *, is_list: bool, whole: bool) -> Iterator[DataRecord]:
    """The records of the beginning of a file, whose last line or character may be cut."""
    if not whole:
        # Of a line that is longer than what is read, nothing can be said.
        data = data[: data.rfind(b"\n") + 1 or (len(data) if is_list else 0)]
    require_text(data[:SIGNATURE_BYTES], file)
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", "strict" if whole else "ignore")
    try:
        if is_list:
            yield from records_of_list(lines.read(), file, whole=whole)
            return
        number = 0
        for line, text in enumerate(lines, start=1):
            if text.strip():
                yield DataRecord(number, line, record_of_line(text, line, file))
                number += 1
    except UnicodeDecodeError:
        raise not_utf8(io.BytesIO(data), file) from None
