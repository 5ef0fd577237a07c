"""Says what PyYAML's scanner and parser errors mean, in the terms of somebody who writes a spec.

`yaml_cause.py` finds the slip that the parser noticed only lines later.
"""

from __future__ import annotations

import re

import yaml

from agentc.diagnostics.diagnostic import Source, Span, split_lines
from agentc.diagnostics.sink import Sink
from agentc.source.yaml_cause import Cause, find_cause

_OPEN_EXPRESSION = re.compile(r"(?:^|[:\-\[,]\s*)(\{\{)")
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7})(?: |$)")
_STATEMENT = re.compile(r"\{%.*?(?:%\}|$)")
_TOML = re.compile(r"\[+([A-Za-z_][\w.]*)\]+\s*(?:#.*)?$")


def report_yaml_error(error: yaml.YAMLError, source: Source, sink: Sink) -> None:
    """Report a syntax error of YAML at its place."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "this is not YAML"
    context = getattr(error, "context_mark", None)
    noticed = mark
    if "could not find expected ':'" in problem:
        # The parser notices in the next line; the trouble is where the key started.
        mark = context or mark
    lines = split_lines(source.text)
    if mark is None:
        sink.error("AGC103", f"{source.name}: {problem}")
        return
    text = lines[mark.line] if mark.line < len(lines) else ""
    if _report_from_line(text, mark.column, mark.line + 1, source, sink, lines):
        return
    at_end = "found unexpected end of stream" in problem
    cause = _cause_of(at_end, lines, mark, noticed or mark, context, source)
    if cause is not None:
        _report_cause(cause, source, lines[cause.line], sink, at_end=at_end)
        return
    in_list = getattr(error, "context", None) == "while parsing a block collection"
    if in_list and context and _report_list(lines, context, mark.line, source, sink):
        return
    notes: tuple[str, ...] = ()
    if context is not None and context.line != mark.line:
        if "expected ',' or" in problem:
            _report_unclosed(lines, context, mark, source, sink)
            return
        about = getattr(error, "context", None) or "reading what is there"
        notes = (f"{about.removeprefix('while ')}, which starts in line {context.line + 1}",)
    message, fix = _explained(problem, text, mark.column)
    sink.error("AGC103", message, _span_at(source, mark), notes=notes, fix=fix)


def _span_at(source: Source, mark: yaml.Mark) -> Span:
    """The character at a mark of PyYAML, which counts from 0."""
    line, column = mark.line + 1, mark.column + 1
    return Span(source, line, column, line, column + 1)


def _cause_of(
    at_end: bool,
    lines: list[str],
    mark: yaml.Mark,
    noticed: yaml.Mark,
    context: yaml.Mark | None,
    source: Source,
) -> Cause | None:
    """The slip behind an error, where it is plain: a quote that is open at the end of the text, or
    one of those that `yaml_cause` knows."""
    if at_end and context is not None:
        return Cause("quote", context.line, context.column, lines[context.line])
    return _break_before(source, lines, mark.line) or find_cause(
        lines, (noticed.line, noticed.column), None if context is None else context.line
    )


def _report_unclosed(
    lines: list[str], opening: yaml.Mark, mark: yaml.Mark, source: Source, sink: Sink
) -> None:
    """A `[` or `{` that nothing closes, or in which a comma is missing."""
    opened = lines[opening.line][opening.column : opening.column + 1]
    sink.error(
        "AGC103",
        f"the `{opened}` is not closed, or a comma is missing after it",
        _span_at(source, opening),
        notes=(f"that is noticed in line {mark.line + 1}",),
        fix=f"close it with `{']' if opened == '[' else '}'}`",
    )


def _report_list(
    lines: list[str], opened: yaml.Mark, goes_on: int, source: Source, sink: Sink
) -> bool:
    """Report a `- ` in front of a key whose siblings have none."""
    if not re.match(r"\s*[\w\"'-]+\s*:", lines[goes_on]):
        return False
    start, column = opened.line, opened.column
    indent = len(lines[start]) - len(lines[start].lstrip())
    above = (line for line in reversed(lines[:start]) if line.strip())
    parent = next((x for x in above if len(x) - len(x.lstrip()) < indent), "").strip()
    section = re.match(r"([\w-]+):$", parent)
    sink.error(
        "AGC103",
        (f"`{section[1]}` starts" if section else "this starts")
        + f" as a list here, and continues without `- ` in line {goes_on + 1}",
        Span(source, start + 1, column + 1, start + 1, column + 2),
        fix="leave the `- ` out where names and values are; a list has it before every item",
    )
    return True


def _report_from_line(
    text: str, column: int, line: int, source: Source, sink: Sink, lines: list[str]
) -> bool:
    """Report what a line is seen to be from itself."""
    expression = _OPEN_EXPRESSION.search(text)
    if expression is not None and expression.start(1) <= column:
        start = expression.start(1) + 1
        sink.error(
            "AGC110",
            "an expression has to be in quotes",
            Span(source, line, start, line, start + 2),
            fix=f"write {_quoted(text[expression.start(1) :].strip())}",
        )
        return True
    if "\t" in text[: column + 1]:
        place = text.index("\t") + 1
        sink.error(
            "AGC111",
            "a tab may not indent YAML",
            Span(source, line, place, line, place + 1),
            fix="indent with spaces",
        )
        return True
    whole = text.strip()
    start = len(text) - len(text.lstrip()) + 1
    message = fix = None
    opened = next((n for n in range(max(0, line - 3), line) if lines[n].startswith("/*")), None)
    if opened is not None:
        line, start, text = opened + 1, 1, lines[opened]
        message, fix = "`/*` starts no comment in YAML", "start each line of a comment with `#`"
    elif _CONFLICT.match(text):
        message, fix = "a conflict marker of git", "keep one of the two sides, remove the markers"
    elif (statement := _STATEMENT.search(text)) is not None and statement.start() <= column:
        message = f"`{statement[0]}`: statements are not part of the language, expressions are"
        start, fix = statement.start() + 1, 'write a value such as "{{ a if b else c }}"'
    elif (section := _TOML.match(whole)) is not None and "could not" not in whole and start == 1:
        message, fix = f"`{whole}` is a section of TOML", f"write `{section[1]}:`"
    if message is None:
        return False
    sink.error("AGC103", message, Span(source, line, start, line, len(text) + 1), fix=fix)
    return True


def _break_before(source: Source, lines: list[str], number: int) -> Cause | None:
    """A line break that editors do not show as one, at the start of the line in question."""
    if number == 0 or source.text.isascii():
        return None
    from agentc.diagnostics.odd_characters import Odd

    at = -1
    for line in lines[:number]:
        at += len(line) + 1
        at += source.text[at : at + 2] == "\r\n"
    character = source.text[at : at + 1]
    if character not in ("\x85", "\u2028", "\u2029"):
        return None
    before = lines[number - 1]
    return Cause("character", number - 1, len(before), before, Odd(len(before), character, " "))


def _report_cause(cause: Cause, source: Source, text: str, sink: Sink, *, at_end: bool) -> None:
    line, column = cause.line + 1, cause.column + 1
    span = Span(source, line, column, line, column + 1)
    meant = cause.meant.strip()
    fix = f"write `{meant}`" if len(meant) <= 100 else None
    if cause.odd is not None:
        odd = cause.odd
        sink.error("AGC125", f"{odd.name} is here{odd.manner}", span, fix=fix)
        return
    if cause.what == "quote":
        sink.error(
            "AGC103",
            "the file ends inside quotes: those that open here are not closed"
            if at_end
            else "the quote that opens here is not closed",
            span,
            notes=("a quote inside of text in single quotes is written twice: ''",)
            if text[cause.column] == "'"
            else (),
            fix=f"close it in this line, with `{text[cause.column]}`",
        )
        return
    if cause.what == "colon":
        message = "`: ` in a text without quotes: to YAML it begins a value"
        sink.error("AGC103", message, span, fix=fix or "put the text in quotes")
        return
    end = Span(source, line, column, line, len(text) + 1)
    if cause.what == "second":
        first, second = (part.strip() for part in cause.meant.split("\n"))
        sink.error(
            "AGC103",
            "a second setting in the same line",
            end,
            fix=f"write `{first}` and `{second}` in lines of their own; a text that holds `: ` "
            "takes quotes",
        )
        return
    if cause.what == "equals":
        sink.error("AGC103", f"`{text.strip()}` has `=` where YAML has `:`", end, fix=fix)
        return
    sink.error("AGC103", f"no space after the `:` of `{text.strip()}`", end, fix=fix)


def _explained(problem: str, text: str, column: int) -> tuple[str, str | None]:
    at = text[column : column + 1]
    if at in ("}", "]"):
        return f"a `{at}` too many, or another one is meant", f"remove the `{at}`, or open it first"
    if "mapping values are not allowed" in problem:
        return (
            "a `:` where no key can be",
            "put the text in quotes if the `:` belongs to it; else check the indentation",
        )
    if "could not find expected ':'" in problem:
        word = text.strip()
        if len(word.split(":")[0]) > 1000:
            return "a key is longer than YAML allows; agentc takes 256 characters at most", None
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
        character = at or " "
        return f"a value cannot start with `{character}`", "put the value in quotes"
    if "unknown escape character" in problem:
        return (
            "an unknown `\\` escape in double quotes",
            "use single quotes, or write `\\\\` for a backslash",
        )
    if "invalid Unicode character escape" in problem or "invalid character escape" in problem:
        return (
            "this `\\` escape gives no character: it is half of a pair, or beyond U+10FFFF",
            "write the character itself, or `\\U` and its eight hex digits",
        )
    if "sequence entries are not allowed" in problem:
        return (
            "a `- ` item of a list cannot be behind its key",
            "write the items in lines of their own, or `[a, b]`",
        )
    if "but found ','" in problem:
        number = re.match(r",\d+(?:[eE][-+]?\d+)?\s*$", text[column:])
        if number:
            return "a number has a decimal point", f"write `0.{number[0].strip()[1:]}`"
        return "a value cannot start with `,`", "put the value in quotes"
    if "expected alphabetic or numeric character" in problem:
        sign = text[max(column - 1, 0) : column] or "*"
        return (
            f"a value cannot start with `{sign}`: to YAML it repeats (`*`) or marks (`&`) a value",
            "put the value in quotes, or name the entries one by one",
        )
    return problem, None


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'
