"""Sink: collects diagnostics while passes go on, so that one run shows every error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from agentc.diagnostics.diagnostic import Diagnostic, Span
from agentc.diagnostics.odd_characters import CharacterNames

# The parts of stage ids that rounds and cells of a sweep differ in: `eto.2.dpo@seed=1`.
_ROUND = re.compile(r"(?<=[a-z0-9_])\.[0-9]+\.(?=[a-z])")
_MOST = 2_000
"""Diagnostics that are kept: nobody reads more, and a hostile file may give any number."""
_STAGE = re.compile(r"^`[^`]+`")
_CELL = re.compile(r"@[a-z][A-Za-z0-9_=,+-]*")


@dataclass(slots=True)
class Sink:
    """What was reported so far. The same complaint about the same place is kept once: unrolled
    rounds and cells of a sweep would otherwise repeat it. The first is shown, with the number of
    the others."""

    _found: dict[tuple[str, Span | None, str], Diagnostic] = field(default_factory=dict)
    _messages: dict[tuple[str, Span | None, str], set[str]] = field(default_factory=dict)
    _steps: dict[tuple[str, Span | None, str], set[tuple[str, ...]]] = field(default_factory=dict)
    _cells: set[tuple[str, ...]] = field(default_factory=set)
    _doubts: dict[tuple[str, Span | None, str], tuple[str, Span | None, str]] = field(
        default_factory=dict
    )
    _unused: list[set[tuple[str, str]]] = field(default_factory=lambda: [set()])
    _further: int = 0
    _has_errors: bool = False
    _cut_short: bool = False

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep a diagnostic, unless the same one is there already."""
        if len(self._found) >= _MOST:
            self._further += 1
            self._has_errors |= diagnostic.severity == "error"
            return
        message = diagnostic.message
        key = (diagnostic.code, diagnostic.span, _unrolled(message))
        if diagnostic.severity != "error":
            # One line under `defaults:` is one doubt, however many stages take it from there.
            rest = f"{_STAGE.sub('', message)} {diagnostic.fix} {diagnostic.notes}"
            doubt = (diagnostic.code, diagnostic.span, _unrolled(rest))
            key = key if key in self._found else self._doubts.setdefault(doubt, key)
        kept = self._found.setdefault(key, diagnostic)
        self._has_errors |= kept.severity == "error"
        self._messages.setdefault(key, set()).add(message)
        self._steps.setdefault(key, set()).add(diagnostic.steps)

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
        rests_on: Iterable[Span] = (),
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
                rests_on=tuple(rests_on),
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

    def note(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        fix: str | None = None,
        steps: Iterable[str] = (),
    ) -> None:
        """Report something that works and has a better form."""
        self.add(
            Diagnostic(
                code=code, message=message, span=span, severity="note", fix=fix, steps=tuple(steps)
            )
        )

    def unused(self, code: str, message: str, span: Span, *, fix: str | None = None) -> None:
        """Warn of something that nothing uses, unless another scale of the spec uses it."""
        self._unused[-1].add((code, message))
        if len(self._unused) == 1:
            self.warning(code, message, span, fix=fix)

    def next_scale(self) -> None:
        """Say that what follows is about another scale of the spec than the one before."""
        self._unused.append(set())

    def has_error_at(self, span: Span, *, besides: str = "") -> bool:
        """Whether an error with another message than `besides` was reported at that place."""
        return any(
            each.span == span and each.severity == "error" and each.message != besides
            for each in self._found.values()
        )

    @property
    def is_full(self) -> bool:
        """Whether there are errors and no room for more, so that there is no use in looking."""
        return len(self._found) >= _MOST and self.has_errors

    def cut_short(self) -> None:
        """Say that what follows was not looked at, so that numbers of diagnostics are the least
        there are."""
        self._cut_short = True

    def sweep(self, cells: Iterable[tuple[str, ...]]) -> None:
        """Say which steps the cells of the spec's sweep have: what is true in every one of them
        is reported without any."""
        self._cells.update(cells)

    @property
    def count(self) -> int:
        """How many diagnostics there are."""
        return len(self._found)

    @property
    def has_errors(self) -> bool:
        """Whether an error was reported."""
        return self._has_errors

    def sorted(self) -> tuple[Diagnostic, ...]:
        """By place (file, line, column), then code; those without a place come first."""
        names = CharacterNames()
        wrong = {_start(each) for each in self._found.values() if each.severity == "error"}
        first, *others = self._unused
        used = first - first.intersection(*others)
        found = (
            self._counted(key, names.explained(kept))
            for key, kept in self._found.items()
            if not any((s.source.name, s.line, s.column) in wrong for s in kept.rests_on)
            and (kept.code, kept.message) not in used
        )
        whole = tuple(sorted(found, key=_place))
        if self._further:
            further = f"{self._further} further are not kept"
            message = f"more than {_MOST} errors and warnings; {further}"
        elif self._cut_short and self.is_full:
            message = f"{_MOST} errors and warnings; what follows is not looked at"
        else:
            return whole
        return (*whole, Diagnostic(code="AGC105", message=message, fix="fix the first ones"))

    def _counted(self, key: tuple[str, Span | None, str], kept: Diagnostic) -> Diagnostic:
        reached = [set(steps) for steps in self._steps[key]]
        if len(self._cells) > 1 and all(
            any(steps.issuperset(cell) for steps in reached) for cell in self._cells
        ):
            swept = {step for cell in self._cells for step in cell}
            kept = replace(kept, steps=tuple(step for step in kept.steps if step not in swept))
        more = len(self._messages[key]) - 1
        if not more:
            return kept
        others = "another stage" if more == 1 else f"{more} other stages"
        if self._cut_short:
            others = f"at least {more} other stage{'s' * (more != 1)}"
        return replace(kept, notes=(*kept.notes, f"the same is true of {others} made from this"))


def _unrolled(text: str) -> str:
    """A text without what rounds and cells differ in."""
    return _CELL.sub("@", _ROUND.sub("..", text))


def _start(diagnostic: Diagnostic) -> tuple[str, int, int] | None:
    span = diagnostic.span
    return None if span is None else (span.source.name, span.line, span.column)


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    span = diagnostic.span
    if span is None:
        return ("", 0, 0, diagnostic.code, diagnostic.message)
    return (span.source.name, span.line, span.column, diagnostic.code, diagnostic.message)
