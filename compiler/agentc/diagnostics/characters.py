"""Names the characters of a diagnostic's text that look like others or cannot be seen.

`Sink.sorted` asks for it once for all diagnostics, whatever rule found them: a rule that refuses
`kіnd` need not know that its second letter is Cyrillic.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agentc.diagnostics.diagnostic import Diagnostic
from agentc.diagnostics.lines import KeptLines
from agentc.diagnostics.odd_characters import Odd, odd_characters, plain
from agentc.diagnostics.span import Span

_QUOTED = re.compile(r"`([^`]+)`|(?<=unexpected char )'(.)'")
_LONGEST = 300
_QUOTES = "\"'"
_NAMES_IT = "AGC125"


class CharacterNames:
    """Adds to diagnostics what their characters are; keeps the lines of each source."""

    def __init__(self) -> None:
        self._lines = KeptLines()

    def explained(self, found: Diagnostic) -> Diagnostic:
        """The diagnostic, with the first odd character of the text that it is about."""
        span = found.span
        if found.code == _NAMES_IT or found.severity != "error":
            return found
        if span is None or span.source.text.isascii():
            return found if found.message.isascii() else self._named(found, "")
        return self._named(found, self._text(span))

    def _text(self, span: Span) -> str:
        if span.end_line - span.line > 3:
            return ""
        lines = self._lines.of(span.source)[span.line - 1 : span.end_line]
        if not lines or sum(map(len, lines)) > 20 * _LONGEST:
            return ""
        if span.end_line == span.line:
            return lines[0][span.column - 1 : span.end_column - 1]
        last = lines[-1][: span.end_column - 1]
        return "\n".join((lines[0][span.column - 1 :], *lines[1:-1], last))

    def _named(self, found: Diagnostic, text: str) -> Diagnostic:
        quoted = next((t for t in _quoted(found.message) if odd_characters(t)), None)
        if quoted is None:
            # Messages put texts on one line, and white space of any kind becomes a space by that.
            inner = text.strip(_QUOTES)
            if not inner or f"`{' '.join(inner.split())}`" not in found.message:
                return found
            quoted = inner
        odd = next((o for o in odd_characters(quoted) if o.meant is not None), None)
        odd = odd or next(iter(odd_characters(quoted)), None)
        if odd is None or len(quoted) > _LONGEST:
            return found
        where = f"character {odd.index + 1} of `{quoted}`" if len(quoted) > 1 else "the character"
        note = f"{where} is {odd.name}{odd.manner}"
        return replace(found, notes=(note, *found.notes), fix=_fix(found, quoted, odd))


def _quoted(message: str) -> tuple[str, ...]:
    return tuple(first or second for first, second in _QUOTED.findall(message))


def _fix(found: Diagnostic, quoted: str, odd: Odd) -> str | None:
    """What to write, unless the rule has something better to say."""
    better = plain(quoted)
    if found.fix is not None and not found.fix.startswith("did you mean"):
        return found.fix
    if not better.isascii() or better == quoted or not better.strip():
        return found.fix
    if odd.meant in ('"', "'"):
        return f"use straight quotes, or none: `{better.strip(_QUOTES)}`"
    return f"write `{better.strip()}`"
