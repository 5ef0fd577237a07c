"""Sink: collects diagnostics while passes go on, so that one run shows every error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agentc.diagnostics.diagnostic import Diagnostic
from agentc.source.span import Span


@dataclass(slots=True)
class Sink:
    """What was reported so far. The same complaint about the same place is kept once: unrolled
    rounds would otherwise repeat it, and the first round is the one worth showing."""

    _found: dict[tuple[str, Span | None, str], Diagnostic] = field(default_factory=dict)

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep a diagnostic, unless the same one is there already."""
        key = (diagnostic.code, diagnostic.span, diagnostic.message)
        self._found.setdefault(key, diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep several."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    def error(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        expected: str | None = None,
        notes: Iterable[str] = (),
        fix: str | None = None,
        steps: Iterable[str] = (),
    ) -> None:
        """Report an error: the spec cannot be compiled."""
        self.add(
            Diagnostic(
                code=code,
                message=message,
                span=span,
                expected=expected,
                notes=tuple(notes),
                fix=fix,
                steps=tuple(steps),
            )
        )

    def warning(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        notes: Iterable[str] = (),
        fix: str | None = None,
        steps: Iterable[str] = (),
    ) -> None:
        """Report something doubtful that does not stop compilation."""
        self.add(
            Diagnostic(
                code=code,
                message=message,
                span=span,
                severity="warning",
                notes=tuple(notes),
                fix=fix,
                steps=tuple(steps),
            )
        )

    @property
    def has_errors(self) -> bool:
        """Whether anything but warnings was reported."""
        return any(found.severity == "error" for found in self._found.values())

    def sorted(self) -> tuple[Diagnostic, ...]:
        """By place (file, line, column), then code; those without a place come first."""
        return tuple(sorted(self._found.values(), key=_place))


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    span = diagnostic.span
    if span is None:
        return ("", 0, 0, diagnostic.code, diagnostic.message)
    return (span.source.name, span.line, span.column, diagnostic.code, diagnostic.message)
