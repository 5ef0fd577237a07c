"""Text for people: aligned tables, counts with their nouns, some of many names, times and sizes.

Whatever prints uses it, so that one thing is worded in one way. Imports nothing of agentc.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TextIO

_NO_BREAK = "\N{NO-BREAK SPACE}"


def aligned(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: str = ""
) -> list[str]:
    """A line for each row, its columns two spaces apart; those numbered in `right` end at one
    place, and the last is padded to nothing. Empty columns are left out."""
    if not rows:
        return []
    columns = [n for n in range(len(rows[0])) if any(row[n] for row in rows)]
    widths = {n: max(len(row[n]) for row in rows) for n in columns}
    lines = []
    for row in rows:
        cells = (
            row[n].rjust(widths[n]) if n in right else row[n].ljust(widths[n]) for n in columns
        )
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def fitted(
    rows: Sequence[Sequence[str]],
    width: int | None,
    *,
    right: Collection[int] = (),
    indent: str = "",
    drop: Sequence[int] = (),
    below: Sequence[int] = (),
) -> list[str]:
    """The rows, the first of which has the heads, in the `width` of a terminal: aligned; else
    without the columns of `drop`, one after the other; else with those of `below` in a line of
    their own under each row; else a line for each cell. None: aligned."""
    kept = range(len(rows[0])) if rows else range(0)
    without = [drop[:count] for count in range(len(drop) + 1)]
    for left_out in (*without, *([(*drop, *below)] if below else [])):
        columns = [n for n in kept if n not in left_out]
        part = [[row[n] for n in columns] for row in rows]
        ends = [at for at, n in enumerate(columns) if n in right]
        lines = aligned(part, right=ends, indent=indent)
        if width is None or max(map(len, lines), default=0) <= width:
            if not {*below} & {*left_out}:
                return lines
            found = lines[:1]
            for line, row in zip(lines[1:], rows[1:], strict=True):
                found += [line, *_cells_below(rows[0], row, below, width, indent)]
            return found
    return [line for row in rows[1:] for line in _stacked(rows[0], row, width, indent)]


def hanging(rows: Sequence[Sequence[str]], width: int | None, indent: str = "") -> list[str]:
    """Rows without heads in the `width` of a terminal: aligned; else the first column aligned and
    the others wrapped beside it, or below it where it takes half of the line."""
    lines = aligned(rows, indent=indent)
    if width is None or max(map(len, lines), default=0) <= width:
        return lines
    first = max(len(row[0]) for row in rows)
    beside = first <= width // 2
    start = indent + " " * (first + 2 if beside else 4)
    found: list[str] = []
    for row in rows:
        cells = [cell.replace(" ", _NO_BREAK) if len(cell) < 20 else cell for cell in row[1:]]
        rest = wrapped("  ".join(cell for cell in cells if cell), width, start, "")
        rest = [line.replace(_NO_BREAK, " ") for line in rest]
        if beside and rest:
            found.append((indent + row[0]).ljust(len(start)) + rest[0].lstrip(" "))
            found += rest[1:]
        else:
            found += [indent + row[0], *rest]
    return found


def _cells_below(
    heads: Sequence[str], row: Sequence[str], columns: Sequence[int], width: int | None, indent: str
) -> list[str]:
    """`    better, worse, equal: 4, 0, 47`; nothing for a row without such cells."""
    cells = [f"{heads[n]}: {row[n]}" for n in columns if row[n] not in ("", "-")]
    return wrapped("; ".join(cells), width, f"{indent}    ") if cells else []


def _stacked(
    heads: Sequence[str], row: Sequence[str], width: int | None, indent: str
) -> Iterable[str]:
    yield from wrapped(row[0], width, indent)
    for head, cell in zip(heads[1:], row[1:], strict=True):
        if cell not in ("", "-"):
            yield from wrapped(f"{head}: {cell}", width, f"{indent}  ")


def wrapped(text: str, width: int | None, indent: str = "", hanging: str = "  ") -> list[str]:
    """A text in lines of `width` columns, those after the first one `hanging` further in; None: in
    one line. A word that is longer than a line stays whole, so that a path can be copied."""
    if width is None:
        return [indent + text]
    return textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrapped_lines(lines: Iterable[str], width: int | None) -> list[str]:
    """The lines, those that are too long for the terminal in several, further in than they began;
    None: as they are."""
    found: list[str] = []
    for line in lines:
        if width is None or len(line) <= width:
            found.append(line)
        else:
            text = line.lstrip(" ")
            found += wrapped(text, width, line[: len(line) - len(text)], "    ")
    return found


def terminal_width(stream: TextIO) -> int | None:
    """Columns of the terminal that a stream writes to; None for a file or a pipe."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def table_width(stream: TextIO) -> int:
    """Columns for tables of results: those of the terminal, or 80 in a file or a pipe."""
    return terminal_width(stream) or 80


def print_wrapped(text: str) -> None:
    """Print a sentence in the width of the terminal, if it goes to one."""
    print("\n".join(wrapped(text, terminal_width(sys.stdout))))


def counted(count: float, noun: str, several: str | None = None) -> str:
    """`1 job`, `3 jobs`, `2.5 rows`; `several` is a plural that is not the noun with an s."""
    return f"{count:g} {noun if count == 1 else several or noun + 's'}"


def some(names: Iterable[str], most: int = 12) -> str:
    """The first few names, and how many more there are."""
    known = list(names)
    return and_more(known[:most], len(known) - most)


def and_more(names: Sequence[str], more: int) -> str:
    """`a, b and 3 more`."""
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def band(low: str, high: str) -> str:
    """`2 min to 5 min`; nothing where both ends are written alike."""
    return "" if low == high else f"{low} to {high}"


def duration(seconds: float | None) -> str:
    """A time that was measured: `41 s`, `3 min 20 s`, `2 h 05 min`; "" for None."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_duration(seconds: float) -> str:
    """A time that is estimated: `0.2 s`, `41 s`, `3.5 min`, `2.1 h`, `12 days`."""
    for size, unit in ((1, "s"), (60, "min"), (3600, "h"), (86400, "days")):
        amount = seconds / size
        limit = {"s": 100, "min": 100, "h": 72}.get(unit)
        if limit is None or amount < limit:
            return f"{_digits(amount)} {unit}"
    raise AssertionError


def format_count(count: float) -> str:
    """`850`, `12k`, `3.4M`, `1.2G`."""
    return _scaled(count, ("", "k", "M", "G", "T"))


def format_size(count: float) -> str:
    """Bytes: `12 kB`, `3.4 GB`."""
    return _scaled(count, (" B", " kB", " MB", " GB", " TB"))


def _scaled(count: float, units: Sequence[str]) -> str:
    """In the first unit that leaves less than a thousand; each is a thousand of the one before."""
    for unit in units[:-1]:
        if count < 999.5:
            return f"{_digits(count)}{unit}"
        count /= 1000
    return f"{_digits(count)}{units[-1]}"


def _digits(number: float) -> str:
    """Two significant digits, and whole numbers from ten on."""
    if number >= 9.95 or number == 0:
        return f"{number:.0f}"
    if number >= 0.095:
        return f"{number:.1f}"
    return f"{number:.2f}"
