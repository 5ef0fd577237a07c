"""Rule and Finding: what a cross-field check is, and what it hands to `check_settings`.

A rule is a plain function over a `StageContext` (see `subject.py`) that yields findings; the first
line of its docstring is its entry in the generated table of rules, and its code has the title and
the explanation of its page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.diagnostic import Severity, Span
from agentc.ir.module import Resource, Stage
from agentc.passes.checks.subject import StageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule. `path` is the dotted setting at fault, "" for the whole entry; `at` is the
    entry that holds it when that is not the stage itself (a server, another stage). `severity`
    differs from the rule's own where a case is more or less certain."""

    message: str
    path: str
    at: Stage | Resource | None = None
    severity: Severity | None = None
    expected: str | None = None
    notes: tuple[str, ...] = ()
    fix: str | None = None
    rests_on: tuple[Span, ...] = ()


Check: TypeAlias = Callable[[StageContext], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A check, the code it reports under (rules may share one), and the stage kinds that it looks
    at."""

    code: Code
    kinds: tuple[str, ...]
    check: Check
    severity: Severity = "error"

    @property
    def summary(self) -> str:
        """The first line of the check's docstring."""
        return (self.check.__doc__ or "").strip().split("\n")[0]


def multiples_near(number: int, step: int) -> list[int]:
    """The nearest multiples of `step` below and above, those above 0."""
    below = number // step * step
    return [found for found in (below, below + step) if found > 0]


def divisors_near(number: int, wanted: int) -> list[int]:
    """The nearest divisors of `number` at or below, and above, `wanted`."""
    found = [d for d in range(1, min(number, 4096) + 1) if number % d == 0]
    below = [d for d in found if d <= wanted][-1:]
    above = [d for d in found if d > wanted][:1]
    return below + above


def either(values: list[int]) -> str:
    """ "8 or 12"."""
    return " or ".join(str(value) for value in values)
