"""PreflightFinding: one thing that preflight looked at, and its result; findings as text for people
and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.diagnostics import Diagnostic
from agentc.kinds.field import Json

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


_MARKS = {"ok": "ok", "problem": "PROBLEM", "warning": "warning", "unknown": "unknown"}
_ORDER = {"problem": 0, "warning": 1, "unknown": 2, "ok": 3}


def findings_text(found: Sequence[PreflightFinding], seconds: float, *, asked: bool) -> str:
    """What this machine tells, then what others answered, the worst first."""
    lines = []
    for online, title in ((False, "on this machine:"), (True, "remote checks:")):
        part = [each for each in found if each.online is online]
        if not part:
            continue
        lines.append(title)
        for each in sorted(part, key=lambda one: _ORDER[one.verdict]):
            stages = f" [{named(each.about)}]" if each.about and each.verdict != "ok" else ""
            lines.append(f"  {_MARKS[each.verdict]:<8} {each.check}: {each.message}{stages}")
            if each.fix and each.verdict != "ok":
                lines.append(f"           help: {each.fix}")
    if not asked:
        lines.append("offline: neither SLURM nor the model hub was queried")
    counts = {verdict: sum(each.verdict == verdict for each in found) for verdict in _ORDER}
    parts = [
        f"{counts['problem']} problem{'' if counts['problem'] == 1 else 's'}",
        f"{counts['warning']} warning{'' if counts['warning'] == 1 else 's'}",
        f"{counts['unknown']} not known",
    ]
    lines.append(f"{', '.join(parts)}; checked in {seconds:.1f} s; nothing was queued")
    return "\n".join(lines) + "\n"


def problems_text(found: Sequence[PreflightFinding], more: str) -> str:
    """What ends a run before it starts; `more` is the command that shows the warnings."""
    lines = ["agentc: this run would fail; nothing was started:"]
    for each in found:
        if each.verdict != "problem":
            continue
        stages = f" [{named(each.about)}]" if each.about else ""
        lines.append(f"  {each.check}: {each.message}{stages}")
        lines += [f"    help: {each.fix}"] if each.fix else []
    lines.append(f"`{more}` shows every check; `agentc run --force` starts the run all the same")
    return "\n".join(lines)


def findings_document(
    found: Sequence[PreflightFinding], name: str, profile: str | None
) -> dict[str, Json]:
    """The same for programs."""
    return {
        "name": name,
        "profile": profile,
        "problems": sum(each.verdict == "problem" for each in found),
        "findings": [
            {
                "check": each.check,
                "verdict": each.verdict,
                "online": each.online,
                "message": each.message,
                "about": list(each.about),
                "fix": each.fix,
            }
            for each in found
        ],
    }
