"""collect_lock: the lock of a compilation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path, PurePath

from agentc import __version__, resources
from agentc.kinds.field import Json
from agentc.lock.document import LockDocument
from agentc.lock.references import OutsideReferences
from agentc.lock.settings import settings_of
from agentc.plan.job import Plan
from agentc.plan.keys import KEY_VERSION


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
            "environments": {name: lock.sha256 for name, lock in sorted(plan.environments.items())},
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
