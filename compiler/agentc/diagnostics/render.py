"""Renders diagnostics: text with excerpt and caret for people, JSON for tools and editors."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence

from agentc.diagnostics.diagnostic import Diagnostic, SourceLines, Span, uses_of
from agentc.text import counted

_WIDEST = 160
_PAINT = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "note": "\x1b[1;36m",
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
}
_RESET = "\x1b[0m"


def render_text(diagnostics: Sequence[Diagnostic], *, colour: bool = False, most: int = 50) -> str:
    """Every diagnostic with place, excerpt and help, then a count; "" when there are none.

    After `most` diagnostics the rest are only counted.
    """
    if not diagnostics:
        return ""
    blocks = render_blocks(diagnostics, colour=colour, most=most)
    return f"{blocks}\n{counts_of(diagnostics)}\n"


def render_blocks(
    diagnostics: Sequence[Diagnostic], *, colour: bool = False, most: int = 50
) -> str:
    """`render_text` without the count of all."""
    lines = SourceLines()
    blocks = [_block(diagnostic, lines, colour) for diagnostic in diagnostics[:most]]
    if len(diagnostics) > most:
        blocks.append(f"... and {len(diagnostics) - most} more\n")
    return "\n".join(blocks)


def counts_of(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`; "" for none."""
    counts = {"error": 0, "warning": 0, "note": 0}
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += 1
    return ", ".join(counted(n, word) for word, n in counts.items() if n)


def render_json(diagnostics: Sequence[Diagnostic], *, indent: int | None = 2) -> str:
    """One JSON object: {"diagnostics": [...], "errors": n, "warnings": n, "notes": n}; on
    one line when `indent` is None."""
    document = {"diagnostics": [_record(found) for found in diagnostics], **_counts(diagnostics)}
    return json.dumps(document, indent=indent, ensure_ascii=False)


def render_json_by_spec(
    found: Iterable[tuple[str, Sequence[Diagnostic]]],
    general: Sequence[Diagnostic] = (),
    *,
    passed_over: int = 0,
) -> str:
    """`render_json` of several specs in one object: each diagnostic names its `spec` (null for
    `general` ones, which belong to none), `specs` has the counts of each, and `passed_over` is how
    many files were none."""
    found = list(found)
    everything = [*general, *(each for _, several in found for each in several)]
    document = {
        "diagnostics": [
            {"spec": spec, **_record(each)}
            for spec, several in [(None, general), *found]
            for each in several
        ],
        "specs": [{"spec": spec, **_counts(several)} for spec, several in found],
        "passed_over": passed_over,
        **_counts(everything),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _counts(diagnostics: Sequence[Diagnostic]) -> dict[str, int]:
    return {
        "errors": sum(found.severity == "error" for found in diagnostics),
        "warnings": sum(found.severity == "warning" for found in diagnostics),
        "notes": sum(found.severity == "note" for found in diagnostics),
    }


def _block(diagnostic: Diagnostic, kept: SourceLines, colour: bool) -> str:
    label = _painted(f"{diagnostic.severity}[{diagnostic.code}]", diagnostic.severity, colour)
    message = _painted(_printable(diagnostic.message), "bold", colour)
    span = diagnostic.span
    if span is None:
        lines = [f"{label}: {message}"]
    else:
        lines = [f"{span.source.name}:{span.line}:{span.column}: {label}: {message}"]
        lines += _excerpt(span, kept, diagnostic.severity, colour)
    if diagnostic.expected:
        lines.append(f"  expected: {_printable(diagnostic.expected)}")
    lines += [f"  note: {_printable(note)}" for note in diagnostic.notes]
    if span is not None:
        lines += [f"  used at: {at.source.name}:{at.line}:{at.column}" for at in uses_of(span)]
    lines += [f"  in: {_printable(step)}" for step in diagnostic.steps]
    if diagnostic.fix:
        lines.append(f"  help: {_printable(diagnostic.fix)}")
    return "\n".join(lines) + "\n"


def _excerpt(span: Span, kept: SourceLines, severity: str, colour: bool) -> list[str]:
    lines = kept.of(span.source)
    if not 1 <= span.line <= len(lines):
        return []
    line = lines[span.line - 1]
    start = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line else len(line.rstrip())
    end = max(min(end, len(line)), start + 1)
    # A very long line is shown from shortly before the place.
    cut = max(0, start - 40) if len(line) > _WIDEST else 0
    shown = _printable(line[cut : cut + _WIDEST])
    width = _columns(line[start : min(end, cut + _WIDEST)]) or 1
    gutter = len(str(span.line))
    caret = " " * _columns(line[cut:start]) + _painted("^" * width, severity, colour)
    bar = _painted("|", "dim", colour)
    return [
        f"{' ' * gutter} {bar}",
        f"{span.line} {bar} {shown}".rstrip(),
        f"{' ' * gutter} {bar} {caret}",
    ]


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes; Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _record(diagnostic: Diagnostic) -> dict[str, object]:
    span = diagnostic.span
    record: dict[str, object] = {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": None if span is None else span.source.name,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "end_line": None if span is None else span.end_line,
        "end_column": None if span is None else span.end_column,
        "expected": diagnostic.expected,
        "notes": list(diagnostic.notes),
        "used_at": [
            {"file": at.source.name, "line": at.line, "column": at.column}
            for at in (() if span is None else uses_of(span))
        ],
        "steps": list(diagnostic.steps),
        "fix": diagnostic.fix,
    }
    return record


def _printable(text: str) -> str:
    # A spec must not be able to move the cursor or to break a line of the message.
    return "".join(
        " " if char == "\t" else char if char.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def _painted(text: str, paint: str, colour: bool) -> str:
    return f"{_PAINT[paint]}{text}{_RESET}" if colour else text
