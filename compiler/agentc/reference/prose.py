"""Folds prose for the generated pages, so that their sources can be compared line by line."""

from __future__ import annotations

import re
import textwrap

WIDTH = 120
"""Columns of prose and of items."""
WIDEST = 180
"""Columns that nothing in a page exceeds; tables of short cells and printed output use them."""
_MARKER = re.compile(r"[-+*>|#]|\d+[.)]$")


def folded(text: str, *, indent: str = "", first: str = "") -> list[str]:
    """Lines of at most `WIDTH` columns, none of which Markdown would take for an item or a heading.

    The first line begins with `first` (by default as the others do)."""
    lines: list[str] = []
    line = first or indent
    for index, word in enumerate(text.split()):
        if index and len(line) + 1 + len(word) > WIDTH and not _MARKER.match(word):
            lines.append(line)
            line = indent + word
        else:
            line += f" {word}" if index else word
    return [*lines, line]


def item(text: str) -> list[str]:
    """An item of a list, its further lines below its first word."""
    return folded(text, indent="  ", first="- ")


def folded_output(text: str) -> str:
    """What a program prints, its lines over `WIDEST` continued below, deeper by four columns."""
    return "\n".join(part for line in text.split("\n") for part in _continued(line))


def _continued(line: str) -> list[str]:
    if len(line) <= WIDEST:
        return [line]
    deeper = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line,
        WIDEST,
        subsequent_indent=deeper,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
