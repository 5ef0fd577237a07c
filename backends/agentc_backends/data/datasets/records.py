"""Records of a JSON or JSONL file, each with its line; their fields, each of which is read, left
out by name, or an error; and the errors of reading them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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


BOOKKEEPING = frozenset(
    {
        *("id", "idx", "index", "uuid", "item_id", "prompt_id", "conversation_id"),
        *("source", "dataset", "split"),
    }
)
"""Fields of a record that name it or its origin: counted, and not used."""

_MOST_NAMES = 12
"""Names of fields that an error lists."""

_NOT_USED = {
    **dict.fromkeys(
        ("label", "kto_tag"),
        "marks good and bad replies (KTO), and a row imitates every reply it has",
    ),
    **dict.fromkeys(
        ("image", "images", "video", "videos", "audio", "audios", "objects"),
        "belongs to multimodal data, and rows hold text",
    ),
    **dict.fromkeys(
        ("reasoning_content", "reasoning", "thinking"),
        "`reasoning: think` trains it as <think>...</think> before the reply",
    ),
    "name": "a message has a role and no name",
    "margin": "no trainer reads margins",
}
"""What is to be said of fields that people expect to be used."""


@dataclass(slots=True)
class Ledger:
    """What the reader left out: `ignored`, fields that `ignore_fields` names; `unused`, fields that
    decide nothing (bookkeeping, numbers of calls). Counted by path (`messages.name`)."""

    ignore: frozenset[str] = frozenset()
    ignored: Counter[str] = field(default_factory=Counter)
    unused: Counter[str] = field(default_factory=Counter)


class Fields:
    """An object of a file. It notes which fields are taken; `finish` rejects what is left. Null, ""
    and empty lists say nothing: exports of tables write them where a row has no such field."""

    __slots__ = ("_above", "_ledger", "_left", "_value")

    def __init__(self, value: Mapping[str, Any], ledger: Ledger, above: str = "") -> None:
        self._value, self._ledger, self._above = value, ledger, above
        self._left = dict(value)

    def path(self, name: str) -> str:
        """The name of a field as `ignore_fields` takes it."""
        return self._above + name

    def take(self, name: str) -> Any:
        """The value of a field, None where there is none or `ignore_fields` names it."""
        if name not in self._left or self._above + name in self._ledger.ignore:
            return None
        return self._left.pop(name)

    def has(self, name: str) -> bool:
        """Whether `take` would give something."""
        if name not in self._left:
            return False
        return has_value(self._left[name]) and self._above + name not in self._ledger.ignore

    def among(self, names: frozenset[str]) -> list[str]:
        """Those of several names that the object has (`has`), in its order."""
        if names.isdisjoint(self._left):
            return []
        return [name for name in self._left if name in names and self.has(name)]

    def holds(self, name: str) -> bool:
        """Whether the object has that field, be it empty, and `ignore_fields` does not name it."""
        return self._left.get(name) is not None and self.path(name) not in self._ledger.ignore

    def is_list(self, name: str) -> bool:
        """Whether that field is a list, be it empty."""
        return self.holds(name) and isinstance(self._left[name], list)

    def names(self) -> list[str]:
        """Its fields, in its order."""
        return [*self._value]

    def view(self, name: str) -> Any:
        """The value of a field, which is not taken by that."""
        return self._value.get(name)

    def listed(self) -> str:
        """Its fields, for people."""
        names = ", ".join(f"`{name}`" for name in [*self._value][:_MOST_NAMES])
        more = len(self._value) - _MOST_NAMES
        rest = f" and {more} more" if more > 0 else ""
        return f"its fields are {names}{rest}" if names else "it has no fields"

    def one_of(self, names: Iterable[str]) -> tuple[str, Any]:
        """The first of several names that the object has, with its value; "" and None where it has
        none of them."""
        for name in names:
            if self.has(name):
                return name, self.take(name)
        return "", None

    def unused(self, *names: str) -> None:
        """Count fields that decide nothing here."""
        for name in names:
            if self.has(name):
                self._left.pop(name)
                self._ledger.unused[self.path(name)] += 1

    def finish(self, what: str) -> None:
        """Raises FieldError where a field was not taken, and neither `ignore_fields` names it."""
        unknown = []
        for name, value in self._left.items():
            if not has_value(value):
                continue
            path = self.path(name)
            if path in self._ledger.ignore:
                self._ledger.ignored[path] += 1
            elif name in BOOKKEEPING and not self._above:
                self._ledger.unused[path] += 1
            else:
                unknown.append(name)
        if unknown:
            paths = [self.path(name) for name in unknown]
            raise unread_error(
                paths, [_NOT_USED.get(name, "") for name in unknown], what, self._ledger
            )


def has_value(value: Any) -> bool:
    """False of null, "" and what is empty. False and 0 do say something."""
    return value is not None and value != "" and value != [] and value != {}


def unread_error(paths: list[str], reasons: list[str], what: str, ledger: Ledger) -> FieldError:
    """The error of fields that nothing reads."""
    listed = ", ".join(
        f"`{path}` ({reason})" if reason else f"`{path}`"
        for path, reason in zip(paths, reasons, strict=True)
    )
    return FieldError(
        f"has {'a field' if len(paths) == 1 else 'fields'} that {what} does not read: {listed}",
        ignore_advice(paths, ledger.ignore),
        tuple(paths),
    )


def ignore_advice(paths: Iterable[str], ignored: Iterable[str]) -> str:
    """What to write so that fields are left out, besides those that are."""
    names = ", ".join(sorted({*ignored, *paths}))
    return f"`ignore_fields: [{names}]` leaves {'them' if ',' in names else 'it'} out"
