"""collect_lock: the lock of a compilation, with what enters each job besides its key, so that a
change has a name: a line of JSON for each job, which is only parsed where keys differ."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath

from agentc import __version__, resources
from agentc.kinds.field import Json
from agentc.lock.document import LockDocument
from agentc.lock.references import OutsideReferences
from agentc.plan.diff import JobRecord, read_records
from agentc.plan.job import Plan
from agentc.plan.keys import KEY_VERSION
from agentc.plan.render import plan_document

MOST_JOBS = 2_000
"""Of more jobs a lock holds the keys alone: every command reads it."""
_LONGEST = 400
"""Characters of a value beyond which its digest stands for it."""
_LONGEST_LINE = 64 * 1024
_DEEPEST = 20


def settings_of(plan: Plan) -> dict[str, Json]:
    """The line of each job by id; of a plan of more than MOST_JOBS, and of a job whose line would
    be longer than a lock can hold, none."""
    if len(plan.jobs) > MOST_JOBS:
        return {}
    records = read_records(plan_document(plan))
    lines = {record.id: _line(record) for record in records.values()}
    return {name: line for name, line in lines.items() if len(line) <= _LONGEST_LINE}


def locked_records(jobs: Mapping[str, Json], settings: Mapping[str, Json]) -> dict[str, JobRecord]:
    """The jobs of a lock whose lines can be read, by id, from its sections of these names. A lock
    is a stranger's file: what is no such line is passed over."""
    found: dict[str, JobRecord] = {}
    for name, made in jobs.items():
        line, kind_and_key = settings.get(name), str(made).split("/")
        held = _parsed(line) if isinstance(line, str) else None
        if held is None or len(kind_and_key) != 2:
            continue
        own, inputs = held
        found[name] = JobRecord(
            id=name,
            stage=name,
            kind=kind_and_key[0],
            key=kind_and_key[1],
            backend=str(own.get("backend")),
            own=own,
            inputs=inputs,
            config={},
        )
    return found


def _line(record: JobRecord) -> str:
    own = {path: _bounded(value) for path, value in record.own.items()}
    return _text({"inputs": {role: [*ids] for role, ids in record.inputs.items()}, "own": own})


def _bounded(value: Json) -> Json:
    text = _text(value)
    if len(text) <= _LONGEST:
        return value
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return f"{digest[:12]} ({len(text)} characters)"


def _text(value: Json) -> str:
    """Canonical JSON in ASCII: one line, the same on every machine."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _parsed(line: str) -> tuple[dict[str, Json], dict[str, tuple[str, ...]]] | None:
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(held, dict) or not _is_shallow(held, _DEEPEST):
        return None
    own, inputs = held.get("own"), held.get("inputs")
    if not isinstance(own, dict) or not isinstance(inputs, dict):
        return None
    # Paths and roles are shown as they are; what could steer a terminal is none.
    return {path: value for path, value in own.items() if path.isprintable()}, {
        role: tuple(map(str, ids))
        for role, ids in inputs.items()
        if isinstance(ids, list) and role.isprintable()
    }


def _is_shallow(value: Json, left: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left > 0 and all(_is_shallow(each, left - 1) for each in inner)


def collect_lock(
    plan: Plan,
    references: OutsideReferences,
    templates: Iterable[tuple[str, str]],
    scale: str | None = None,
) -> LockDocument:
    """The lock of a plan. `references` are what compiling it asked for; `templates` are pairs of
    name and sha256. Jobs stand in the plan's order, all else is sorted."""
    backends: dict[str, Json] = {}
    for job in plan.jobs:
        backends[job.draft.backend] = job.draft.version
        backends.update((lease.draft.backend, lease.draft.version) for lease in job.leases)
    return LockDocument(
        spec=plan.spec_file,
        scale=scale,
        agentc=__version__,
        keys=KEY_VERSION,
        sections={
            "params": dict(sorted(plan.params.items())),
            "models": {
                f"{repo}@{revision}": commit
                for (repo, revision), commit in sorted(references.revisions.items())
                if commit is not None
            },
            "files": dict(sorted(references.files.items())),
            "templates": dict(sorted(templates)),
            "software": {name: lock.sha256 for name, lock in sorted(plan.software.items())},
            "backends": dict(sorted(backends.items())),
            "jobs": {job.id: job.object for job in plan.jobs},
            "settings": settings_of(plan),
        },
    )


def template_digests(files: Iterable[Path], directory: Path) -> tuple[tuple[str, str], ...]:
    """Name and sha256 of template files, named as `use:` names them: `eto/dpo` for one that ships
    with agentc, `./mine.yaml` for one beside the spec. Neither depends on the machine.

    Raises OSError when a file cannot be read.
    """
    return tuple(
        (_template_name(file, directory), hashlib.sha256(file.read_bytes()).hexdigest())
        for file in files
    )


def _template_name(file: Path, directory: Path) -> str:
    real, shipped = file.resolve(), resources.templates().resolve()
    if real.is_relative_to(shipped):
        return real.relative_to(shipped).with_suffix("").as_posix()
    return "./" + PurePath(os.path.relpath(real, directory.resolve())).as_posix()
