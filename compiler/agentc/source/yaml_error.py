"""Says what PyYAML's scanner and parser errors mean, in the terms of somebody who writes a spec."""

from __future__ import annotations

import re

import yaml

from agentc.diagnostics.sink import Sink
from agentc.source.lines import split_lines
from agentc.source.span import Source, Span

_OPEN_EXPRESSION = re.compile(r"(?:^|[:\-\[,]\s*)(\{\{)")


def report_yaml_error(error: yaml.YAMLError, source: Source, sink: Sink) -> None:
    """Report a syntax error of YAML at its place."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "this is not YAML"
    if "could not find expected ':'" in problem:
        # The parser notices in the next line; the trouble is where the key started.
        mark = getattr(error, "context_mark", None) or mark
    lines = split_lines(source.text)
    if mark is None:
        sink.error("AGC103", f"{source.name}: {problem}")
        return
    line, column = mark.line + 1, mark.column + 1
    span = Span(source, line, column, line, column + 1)
    text = lines[mark.line] if mark.line < len(lines) else ""
    expression = _OPEN_EXPRESSION.search(text)
    if expression is not None and expression.start(1) <= mark.column:
        start = expression.start(1) + 1
        sink.error(
            "AGC110",
            "an expression has to stand in quotes",
            Span(source, line, start, line, start + 2),
            fix=f"write {_quoted(text[expression.start(1) :].strip())}",
        )
        return
    if "\t" in text[: mark.column + 1]:
        place = text.index("\t") + 1
        sink.error(
            "AGC111",
            "a tab may not indent YAML",
            Span(source, line, place, line, place + 1),
            fix="indent with spaces",
        )
        return
    message, fix = _explained(problem, text, mark.column)
    context = getattr(error, "context_mark", None)
    notes: tuple[str, ...] = ()
    if context is not None and context.line != mark.line:
        about = getattr(error, "context", None) or "reading what is there"
        notes = (f"{about.removeprefix('while ')}, which starts in line {context.line + 1}",)
    sink.error("AGC103", message, span, notes=notes, fix=fix)


def _explained(problem: str, text: str, column: int) -> tuple[str, str | None]:
    if "mapping values are not allowed" in problem:
        return (
            "a `:` where no key can stand",
            "put the text in quotes if the `:` belongs to it; else check the indentation",
        )
    if "could not find expected ':'" in problem:
        return "a key without `:`", "write `key: value`; put longer text in quotes"
    if "expected <block end>" in problem:
        return (
            "this line does not fit what is around it",
            "check its indentation, and that quotes and brackets before it are closed",
        )
    if "expected ',' or" in problem:
        return (
            "a bracket is not closed, or a comma is missing",
            "separate values by `,` and close what was opened",
        )
    if "found unexpected end of stream" in problem:
        return "the file ends inside quotes", "close the quotes"
    if "cannot start any token" in problem:
        character = text[column] if column < len(text) else " "
        return f"a value cannot start with `{character}`", "put the value in quotes"
    if "unknown escape character" in problem:
        return (
            "an unknown `\\` escape in double quotes",
            "use single quotes, or write `\\\\` for a backslash",
        )
    return problem, None


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'
