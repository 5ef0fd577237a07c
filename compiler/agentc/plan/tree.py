"""The plan as text for people: stages by round, what each would do, and what changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from agentc.plan.diff import JobDiff, explain_root
from agentc.plan.job import Job, Plan
from agentc.plan.work import State, Work

_STATES: dict[State, str] = {"cached": "in the store", "run": "to run", "unneeded": "not needed"}


def plan_text(
    plan: Plan, work: Work, diffs: Mapping[str, JobDiff] | None, *, full: bool = False
) -> str:
    """The whole plan. `diffs` compares with the plan of the last run; None: there was none."""
    session_of = {member: session.id for session in plan.sessions for member in session.members}
    rows = [_row(job, session_of.get(job.id), work) for job in plan.jobs]
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(5)]
    lines = [_headline(plan, work), *_servers(plan, work), ""]
    group = ""
    for job, row in zip(plan.jobs, rows, strict=True):
        title = _round_title(job)
        if title != group:
            lines += [title] if title else []
            group = title
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(f"  {'  '.join(cells)}".rstrip())
        lines += [f"      {line}" for line in _what_changed(job.id, diffs)]
        lines += [f"      {line}" for line in (_details(job) if full else ())]
    if diffs is not None:
        gone = [name for name, diff in diffs.items() if diff.novelty == "gone"]
        lines += [f"  no longer part of it: {', '.join(gone)}"] if gone else []
    return "\n".join(lines) + "\n"


def diff_lines(diff: JobDiff, diffs: Mapping[str, JobDiff]) -> list[str]:
    """What changed in a job and, for what it inherits, where that comes from."""
    lines = [change.text() for change in diff.changes]
    nearest = diff.nearest_roots(4)
    others = [root for root in nearest if root != diff.id][:3]
    if others:
        causes = "; ".join(explain_root(diffs, root) for root in others)
        left = diff.root_count - (diff.id in nearest) - len(others)
        more = f"; and {left} more" if left else ""
        lines.append(f"because of {causes}{more}")
    return lines


def _headline(plan: Plan, work: Work) -> str:
    counts = [
        f"{work.count(state)} {words}" for state, words in _STATES.items() if work.count(state)
    ]
    stages = len({job.stage for job in plan.jobs})
    return f"{plan.name}: {stages} stages, {len(plan.jobs)} jobs: {', '.join(counts)}"


def _servers(plan: Plan, work: Work) -> list[str]:
    if not work.server_starts:
        return []
    spared = f"; sharing spares {work.saved_starts} more" if work.saved_starts else ""
    starts = "1 start" if work.server_starts == 1 else f"{work.server_starts} starts"
    return [f"model servers: {starts}{spared}"]


def _row(job: Job, session: str | None, work: Work) -> tuple[str, ...]:
    shared = f"on {session}" if session else ""
    return (job.id, job.backend, job.key[:8], _STATES[work.states[job.id]], shared)


def _round_title(job: Job) -> str:
    if job.round is None:
        return ""
    return f"{job.stage.split(f'.{job.round}.')[0]}, round {job.round}"


def _what_changed(name: str, diffs: Mapping[str, JobDiff] | None) -> Iterable[str]:
    if diffs is None or diffs[name].novelty == "same":
        return ()
    if diffs[name].novelty == "new":
        return ("new since the last run",)
    return diff_lines(diffs[name], diffs)


def _details(job: Job) -> Iterable[str]:
    yield f"{job.kind} of {job.stage}, version {job.version}, in {job.environment}"
    for role, names in job.inputs.items():
        yield f"{role}: {', '.join(names)}"
    settings = job.identity.get("settings")
    if isinstance(settings, dict) and settings:
        yield "set: " + ", ".join(f"{path}={json.dumps(v)}" for path, v in settings.items())
    for lease in job.leases:
        yield f"{lease.role} server: {lease.backend}"
    asked = job.resources
    yield f"asks for {asked.cpus} cpus" + (f", {asked.gpus} gpus" if asked.gpus else "")
    yield f"key {job.key}"
