"""compare_lock: what of a lock is out of date, as diagnostics that name each change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from agentc.diagnostics.diagnostic import Diagnostic, Severity
from agentc.kinds.field import Json
from agentc.lock.collect import locked_records
from agentc.lock.document import LockDocument
from agentc.plan.diff import JobDiff, change_texts, compare_records
from agentc.plan.stage_names import folded_names
from agentc.text import counted, some

_OUTSIDE = {
    "models": "the commit of {} is",
    "files": "the content of {} is",
    "templates": "the template {} is",
    "software": "the software stack {} is",
    "backends": "the version of backend {} is",
}
_SHOWN = 8
_BESIDE = 4
"""Jobs that are named beside a change."""


def compare_lock(
    locked: LockDocument, current: LockDocument, severity: Severity
) -> tuple[Diagnostic, ...]:
    """AGC742 for each thing outside of the spec that changed, and AGC743 when jobs did.

    With other params or another scale than the lock was written for, jobs differ by intent and only
    what is outside of the spec is compared, as far as both name it.
    """
    same_work = locked.scale == current.scale and dict(locked.section("params")) == dict(
        current.section("params")
    )
    found = list(_outside(locked, current, severity, whole=same_work))
    if same_work:
        found += _jobs(locked, current, severity)
    return tuple(found)


def _outside(
    locked: LockDocument, current: LockDocument, severity: Severity, *, whole: bool
) -> Iterator[Diagnostic]:
    for section, wording in _OUTSIDE.items():
        old, new = locked.section(section), current.section(section)
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) == new.get(name) or (name not in new and not whole):
                continue
            if name not in old:
                message = f"the lock does not name {_subject(section, name)}"
            elif name not in new:
                message = f"the lock names {_subject(section, name)}, which nothing uses any more"
            else:
                message = f"{wording.format(f'`{name}`')} not what the lock says"
            yield Diagnostic(
                code="AGC742",
                message=message,
                span=locked.places.get((section, name), locked.start),
                severity=severity,
                expected=None if name not in old else _short(old[name]),
                notes=() if name not in new or name not in old else (f"now {_short(new[name])}",),
                fix=_fix(locked),
            )


def _jobs(locked: LockDocument, current: LockDocument, severity: Severity) -> Iterator[Diagnostic]:
    old, new = locked.section("jobs"), current.section("jobs")
    changed = [name for name in new if name in old and old[name] != new[name]]
    added = [name for name in new if name not in old]
    gone = [name for name in old if name not in new]
    if not (changed or added or gone):
        return
    notes = [*job_changes(locked, current, _SHOWN)]
    if (locked.agentc, locked.keys) != (current.agentc, current.keys):
        notes.append(f"the lock was written by agentc {locked.agentc}, this is {current.agentc}")
    first = next(iter((*changed, *gone)), None)
    count = len(changed) + len(added) + len(gone)
    yield Diagnostic(
        code="AGC743",
        message=f"{count} of {len({*old, *new})} jobs are not those of the lock",
        span=locked.places.get(("jobs", first), locked.start) if first else locked.start,
        severity=severity,
        notes=tuple(notes),
        fix=_fix(locked),
    )


def job_changes(locked: LockDocument, current: LockDocument, most: int) -> Iterator[str]:
    """How the jobs of two locks differ, a line each: settings that changed, with their jobs (`most`
    of both), how many jobs follow from them, jobs that came or went."""
    old, new = locked.section("jobs"), current.section("jobs")
    diffs = compare_records(
        locked_records(old, locked.section("settings")),
        locked_records(new, current.section("settings")),
    )
    changed = [name for name in new if name in old and old[name] != new[name]]
    yield from _setting_changes(changed, new, diffs, most)
    causes = {name: _cause(diffs.get(name)) for name in changed}
    following = [name for name, cause in causes.items() if cause == "other jobs"]
    if following:
        verb = "follows" if len(following) == 1 else "follow"
        yield f"{counted(len(following), 'more job')} {verb} from that"
    unknown = [name for name, cause in causes.items() if cause == "unknown"]
    if unknown:
        yield f"changed: {some(unknown, most)}"
    yield from _name_changes(old, new, diffs, most)


def _name_changes(
    old: Mapping[str, Json], new: Mapping[str, Json], diffs: Mapping[str, JobDiff], most: int
) -> Iterator[str]:
    """Jobs that came, went, or have another name."""
    renamed = {diff.was: name for name, diff in diffs.items() if diff.was}
    for words, names in (
        ("new", [name for name in new if name not in old and name not in renamed.values()]),
        ("gone", [name for name in old if name not in new and name not in renamed]),
        ("the same under another name", [f"{now} (was {was})" for was, now in renamed.items()]),
    ):
        if names:
            yield f"{words}: {some(names, most)}"


def _setting_changes(
    changed: Sequence[str], jobs: Mapping[str, Json], diffs: Mapping[str, JobDiff], most: int
) -> Iterator[str]:
    """The first of the settings that changed, each with its jobs."""
    changes: dict[str, list[str]] = {}
    for name in changed:
        for text in change_texts(diffs[name].changes) if name in diffs else ():
            changes.setdefault(text, []).append(name)
    for text, names in list(changes.items())[:most]:
        yield f"{text} ({some(folded_names(names, jobs), _BESIDE)})"
    if len(changes) > most:
        yield f"and {counted(len(changes) - most, 'more change')}"


def _cause(diff: JobDiff | None) -> Literal["itself", "other jobs", "unknown"]:
    """Why a job changed: its own settings, those of jobs before it, or nothing that is recorded."""
    if diff is None:
        return "unknown"
    if diff.changes:
        return "itself"
    if not diff.root_count or diff.nearest_roots(1) == [diff.id]:
        return "unknown"
    return "other jobs"


def _subject(section: str, name: str) -> str:
    kind = {"models": "the model", "files": "the file", "templates": "the template"}
    return f"{kind.get(section, f'the {section[:-1]}')} `{name}`"


def _fix(locked: LockDocument) -> str:
    return f"undo the change, or accept it: agentc lock {locked.spec}"


def _short(value: Json) -> str:
    text = str(value)
    return text if len(text) <= 16 else f"{text[:16]}..."
