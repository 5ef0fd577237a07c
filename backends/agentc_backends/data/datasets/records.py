"""Records of a JSON or JSONL file, each with its line, and the errors of reading them.

Neighbours: `fields.py` (the fields of a record), `layouts.py` (the formats that records have).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_TOO_DEEP = (
    "holds lists or objects within each other more deeply than can be read; a conversation needs "
    "three levels"
)
_ONE_A_LINE = (
    "write one object a line, which `jq -c .` does for objects over several lines, or one list in "
    "the whole file"
)
_BINARY = (
    (b"\x1f\x8b", "compressed by gzip", "unpack it: `gunzip -c {file} > unpacked.jsonl`"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it: `zstd -d {file} -o unpacked.jsonl`"),
    (b"\xfd7zXZ", "compressed by xz", "unpack it: `xz -dc {file} > unpacked.jsonl`"),
    (b"BZh", "compressed by bzip2", "unpack it: `bunzip2 -c {file} > unpacked.jsonl`"),
    (b"PK\x03\x04", "a ZIP archive or an Excel table", "unpack it, or export it as JSONL"),
    (
        b"PAR1",
        "a Parquet file",
        "convert it: `datasets.Dataset.from_parquet('{file}').to_json('rows.jsonl')`",
    ),
    (b"ARROW1", "an Arrow file", "convert it to JSONL with `datasets`: `to_json('rows.jsonl')`"),
    (b"SQLite format 3", "an SQLite database", "export its rows as JSONL"),
    (b"\x80\x04", "a pickle of Python", "write its records as JSONL with `json.dumps`"),
    (b"\xff\xfe", "UTF-16 text", "convert it: `iconv -f UTF-16 -t UTF-8 {file} > rows.jsonl`"),
    (b"\xfe\xff", "UTF-16 text", "convert it: `iconv -f UTF-16 -t UTF-8 {file} > rows.jsonl`"),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch the file with `git lfs pull`"),
)
"""How files that are often given for JSON begin, what they are, and what to do."""
SIGNATURE_BYTES = 32
_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"


class DataRecord(NamedTuple):
    """`number` counts records from 0, as the ids of rows do; `line` counts lines from 1."""

    number: int
    line: int
    value: Any


class DatasetError(ValueError):
    """A file that cannot be used: what is wrong, and what to write instead. `unread` are the fields
    of the record that nothing reads, where these are the trouble."""

    def __init__(self, reason: str, fix: str = "", unread: tuple[str, ...] = ()) -> None:
        super().__init__(f"{reason}. To fix it: {fix}" if fix else reason)
        self.reason, self.fix, self.unread = reason, fix, unread


class MalformedError(ValueError):
    """One record that is no conversation; the message says why. `on_malformed` decides on it."""

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.fix = fix


class FieldError(ValueError):
    """A field that would be lost (`unread`) or has a value that cannot be used. It is always an
    error."""

    def __init__(self, reason: str, fix: str = "", unread: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.fix, self.unread = fix, unread


class OtherFormatError(FieldError):
    """A record that is plainly in another format than the stage names."""


def read_records(path: Path) -> Iterator[DataRecord]:
    """The records of a file that holds one JSON list, or one object a line.

    Raises DatasetError at what is not JSON, with the line.
    """
    with path.open("rb") as file:
        require_text(file.read(SIGNATURE_BYTES), path.name)
    try:
        with path.open(encoding="utf-8-sig") as lines:
            first = lines.read(4096).lstrip()[:1]
            lines.seek(0)
            if first == "[":
                yield from records_of_list(lines.read(), path.name)
                return
            number = 0
            for line, text in enumerate(lines, start=1):
                if text.strip():
                    yield DataRecord(number, line, record_of_line(text, line, path.name))
                    number += 1
    except UnicodeDecodeError:
        with path.open("rb") as file:
            raise not_utf8(file, path.name) from None


def require_text(start: bytes, file: str) -> None:
    """Raises DatasetError for a file that begins as archives, tables or other encodings do."""
    for signature, what, fix in _BINARY:
        if start.startswith(signature):
            raise DatasetError(f"{file} is {what}, not JSON", fix.format(file=file))


def not_utf8(lines: Iterable[bytes], file: str) -> DatasetError:
    """The error of a file that is not UTF-8, with its first line that is not."""
    for number, line in enumerate(lines, start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"{file}:{number}: not UTF-8 text (byte 0x{line[error.start]:02x})"
            break
    else:
        where = f"{file} is not UTF-8 text"
    return DatasetError(where, f"convert it, such as by `iconv -f LATIN1 -t UTF-8 {file}`")


def record_of_line(text: str, line: int, file: str) -> Any:
    """The object of one line. Raises DatasetError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise DatasetError(f"{file}:{line}: {_TOO_DEEP}") from None
    except json.JSONDecodeError as error:
        if line == 1 and text.lstrip()[:1] != "{":
            begins = text.strip()[:40]
            raise DatasetError(
                f"{file}:1: not JSON: the file begins with `{begins}`",
                "convert it to JSONL; for a table, pandas' `to_json(..., orient='records', "
                "lines=True)` does",
            ) from None
        # The decoder reports a text that is not closed at its beginning.
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        reason = "the line ends within an object" if cut else f"{error.msg}, column {error.colno}"
        raise DatasetError(f"{file}:{line}: not JSON ({reason})", _ONE_A_LINE) from None
    except ValueError as error:  # a number of more digits than Python reads
        raise DatasetError(f"{file}:{line}: not JSON ({error})", _ONE_A_LINE) from None


def records_of_list(text: str, file: str, *, whole: bool = True) -> Iterator[DataRecord]:
    """The records of a text that is one JSON list; of one that is cut (`whole` false), those
    before the cut. Raises DatasetError."""
    at, line = text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))
    number = 0
    while True:
        start = _after_space(text, at)
        line += text.count("\n", at, start)
        if text[start : start + 1] == "]" and not number:
            return _require_end(text, start + 1, line, file)
        try:
            value, at = _DECODER.raw_decode(text, start)
        except RecursionError:
            raise DatasetError(f"{file}:{line}: {_TOO_DEEP}") from None
        except json.JSONDecodeError as error:
            if not whole:
                return
            raise DatasetError(
                f"{file}:{error.lineno}: not JSON ({error.msg}, column {error.colno})"
            ) from None
        yield DataRecord(number, line, value)
        number += 1
        line += text.count("\n", start, at)
        end = _after_space(text, at)
        line += text.count("\n", at, end)
        if text[end : end + 1] == "]":
            return _require_end(text, end + 1, line, file)
        if text[end : end + 1] != ",":
            if not whole and end == len(text):
                return
            raise DatasetError(f"{file}:{line}: not JSON (expected a comma or the list's end)")
        at = end + 1


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _require_end(text: str, at: int, line: int, file: str) -> None:
    if text[at:].strip():
        raise DatasetError(f"{file}:{line}: not JSON (text after the end of the list)")
