"""collect_lock: the lock of a compilation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePath

from agentc import __version__, resources
from agentc.kinds.field import Json
from agentc.lock.document import LockDocument
from agentc.lock.references import References
from agentc.plan.job import Plan
from agentc.plan.keys import KEY_VERSION


def collect_lock(
    plan: Plan, references: References, templates: Iterable[tuple[str, str]]
) -> LockDocument:
    """The lock of a plan. `references` are what compiling it asked for; `templates` are pairs of
    name and sha256. Jobs stand in the plan's order, all else is sorted."""
    backends: dict[str, Json] = {}
    for job in plan.jobs:
        backends[job.backend] = job.version
        backends.update((lease.backend, lease.version) for lease in job.leases)
    return LockDocument(
        spec=plan.spec_file,
        agentc=__version__,
        keys=KEY_VERSION,
        sections={
            "params": dict(sorted(plan.params.items())),
            "models": {
                f"{repo}@{revision}": commit
                for (repo, revision), commit in sorted(references.revisions.items())
            },
            "files": dict(sorted(references.files.items())),
            "templates": dict(sorted(templates)),
            "environments": {name: lock.sha256 for name, lock in sorted(plan.environments.items())},
            "backends": dict(sorted(backends.items())),
            "jobs": {job.id: job.object for job in plan.jobs},
        },
    )


def template_digests(files: Iterable[Path], directory: Path) -> tuple[tuple[str, str], ...]:
    """Name and sha256 of template files. One that ships with agentc is named from its folder of
    data files, another from the spec's; neither name depends on the machine.

    Raises OSError when a file cannot be read.
    """
    return tuple(
        (template_name(file, directory), hashlib.sha256(file.read_bytes()).hexdigest())
        for file in files
    )


def template_name(file: Path, directory: Path) -> str:
    """The name of a template file in a lock."""
    import os

    real = file.resolve()
    shipped = resources.data_directory().resolve()
    if real.is_relative_to(shipped / "templates"):
        return real.relative_to(shipped).as_posix()
    return PurePath(os.path.relpath(real, directory.resolve())).as_posix()
