"""What broke a text that is not YAML: guesses, each tried by fixing the text and parsing again.

A parser says where it stopped, often lines after the slip. A guess counts when the fixed
text parses beyond that place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from agentc.diagnostics.odd_characters import Odd, odd_characters, plain

_WORK = 3_000_000
"""Characters that trials may parse altogether."""
_BACK = 400
"""Lines before the place in question in which an open quote is looked for."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_SPACE = re.compile(r"^(\s*(?:- +)?)([A-Za-z_][\w.-]*):(?=[^\s/\\:])")
_EQUALS = re.compile(r"^(\s*(?:- +)?)([A-Za-z_][\w.-]*)\s*=\s*(?=\S)")
_KEY = re.compile(r"(?:^\s*(?:- +)*|[{,]\s*)([A-Za-z_][\w.-]*):\s+")
_NEXT_KEY = re.compile(r",\s*[A-Za-z_][\w.-]*:\s")
_SECOND = re.compile(
    r"(\S+\s{2,}|(?:[-+\d.][\d.e+-]*|true|false|null)\s+)([a-z_][\w.-]*):\s+(?:\S+|[\[{].*[\]}])"
)
_OPENS = re.compile(r"(?:^|(?<=[:,\[{-])|(?<=[:,\[{-] ))\s*([\"'])")


@dataclass(frozen=True, slots=True)
class Cause:
    """`line` and `column` count from 0. `meant` is the line as it should be."""

    what: str
    line: int
    column: int
    meant: str
    odd: Odd | None = None


def find_cause(lines: list[str], problem: tuple[int, int], context: int | None) -> Cause | None:
    """The first guess that takes the parser beyond `problem` (line and column from 0); `context`
    is the line where it says that the trouble began."""
    trials = max(2, _WORK // (1 + sum(map(len, lines))))
    for count, cause in enumerate(_guesses(lines, problem[0], context)):
        if count >= trials:
            return None
        reached = _first_error([*lines[: cause.line], cause.meant, *lines[cause.line + 1 :]])
        if reached is None or reached[0] > problem[0]:
            return cause
    return None


def _first_error(lines: list[str]) -> tuple[int, int] | None:
    try:
        for _ in yaml.parse("\n".join(lines), Loader=_LOADER):
            pass
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return (0, 0) if mark is None else (mark.line, mark.column)
    return None


def _guesses(lines: list[str], problem: int, context: int | None) -> Iterator[Cause]:
    near = list(_near(lines, problem, context))
    for at in near:
        yield from _odd(lines[at], at)
    for at in near[:1]:
        yield from _colon(lines[at], at)
    for at in near:
        for what, pattern in (("space", _NO_SPACE), ("equals", _EQUALS)):
            found = pattern.match(lines[at])
            if found is not None:
                fixed = f"{found[1]}{found[2]}: {lines[at][found.end() :]}"
                yield Cause(what, at, found.start(2), fixed)
    for at in range(min(problem, len(lines) - 1), max(problem - _BACK, -1), -1):
        open_at = _open_quote(lines[at])
        if open_at is not None:
            fixed = _closed(lines[at], open_at)
            yield Cause("quote", at, open_at, fixed)


def _near(lines: list[str], problem: int, context: int | None) -> Iterator[int]:
    """The line in question, the two before it that say something, and where it began."""
    seen = 0
    for at in range(min(problem, len(lines) - 1), -1, -1):
        if lines[at].strip() and not lines[at].lstrip().startswith("#"):
            yield at
            seen += 1
            if seen == 3:
                break
    if context is not None and context < problem - 2 and context < len(lines):
        yield context


def _odd(line: str, at: int) -> Iterator[Cause]:
    odd = [each for each in odd_characters(line) if each.meant is not None]
    if odd:
        # One may be enough, and is then the one to name.
        for each in odd[:6]:
            meant = each.meant or ""
            fixed = line[: each.index] + meant + line[each.index + 1 :]
            yield Cause("character", at, each.index, fixed, each)
        yield Cause("character", at, odd[0].index, plain(line), odd[0])


def _colon(line: str, at: int) -> Iterator[Cause]:
    """Texts without quotes that hold `: `, or a second setting behind the first one."""
    colons: list[int] = []
    meant, done = "", 0
    for key in _KEY.finditer(line):
        begin = key.end()
        if begin < done or line[begin : begin + 1] in ("", *"\"'[{|>&*!#"):
            continue
        flow = _depth(line[:begin]) > 0
        following = _NEXT_KEY.search(line, begin) if flow else None
        end = following.start() if following else len(line.rstrip())
        while flow and not following and line[end - 1] in "]}":
            end -= 1
        text = line[begin:end].split(" #")[0].rstrip()
        if ": " not in text and not text.endswith(":"):
            continue
        second = None if flow else _SECOND.fullmatch(text)
        if second is not None:
            rest = text[second.start(2) :]
            fixed = f"{line[:begin]}{second[1].rstrip()}\n{' ' * key.start(1)}{rest}"
            yield Cause("second", at, begin + second.start(2), fixed)
        quoted = "'" + text.replace("'", "''") + "'" if '"' in text else f'"{text}"'
        colons.append(begin + f"{text} ".index(": "))
        meant += line[done:begin] + quoted
        done = begin + len(text)
    if colons:
        yield Cause("colon", at, colons[0], meant + line[done:])


def _depth(text: str) -> int:
    return text.count("{") + text.count("[") - text.count("}") - text.count("]")


def _open_quote(line: str) -> int | None:
    """Where a quote opens that its line does not close."""
    start = 0
    while (found := _OPENS.search(line, start)) is not None:
        opened = found.start(1)
        end = _closing(line, opened)
        if end is None:
            return opened
        start = end + 1
    return None


def _closing(line: str, opened: int) -> int | None:
    quote, at = line[opened], opened + 1
    while at < len(line):
        if quote == '"' and line[at] == "\\":
            at += 1
        elif line[at] == quote:
            if quote == "'" and line[at + 1 : at + 2] == "'":
                at += 1
            else:
                return at
        at += 1
    return None


def _closed(line: str, opened: int) -> str:
    """The line with its quote closed: at its end, or before what closes a flow collection."""
    body = line.rstrip()
    depth = _depth(line[:opened])
    tail = len(body)
    while depth > 0 and body[tail - 1 : tail] in ("}", "]"):
        tail, depth = tail - 1, depth - 1
    return f"{body[:tail]}{line[opened]}{body[tail:]}"
