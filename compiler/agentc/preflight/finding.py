"""Finding: one thing that preflight looked at, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.diagnostics import Diagnostic

Verdict: TypeAlias = Literal["ok", "problem", "warning", "unknown"]
"""problem: a run would fail of it. warning: it may, or somebody should know. unknown: nobody
answered, or it depends on what is only known later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFinding:
    """`check` is a word (`partition`, `disk`); `online` tells answers of others from facts of this
    machine; `about` are stages."""

    check: str
    verdict: Verdict
    message: str
    online: bool = False
    about: tuple[str, ...] = ()
    fix: str | None = None


def problem(check: str, message: str, fix: str | None = None) -> PreflightFinding:
    """What SLURM's answers say that a run would fail of."""
    return PreflightFinding(check=check, verdict="problem", message=message, fix=fix, online=True)


def warning(check: str, message: str, fix: str | None = None) -> PreflightFinding:
    """What SLURM's answers say that may go wrong."""
    return PreflightFinding(check=check, verdict="warning", message=message, fix=fix, online=True)


def of_diagnostic(check: str, each: Diagnostic) -> PreflightFinding:
    """What the compiler says of it, as a finding."""
    return PreflightFinding(
        check=check,
        verdict="problem" if each.severity == "error" else "warning",
        message="; ".join([each.message, *each.notes]),
        fix=each.fix,
    )


def named(names: Iterable[str], most: int = 4) -> str:
    """Names for a message, the first few."""
    known = list(dict.fromkeys(names))
    shown = ", ".join(f"`{name}`" for name in known[:most])
    return f"{shown} and {len(known) - most} more" if len(known) > most else shown
