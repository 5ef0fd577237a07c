"""A distribution for tests of the store: backends whose program is `programs/counted.py`.

`install` puts it into a folder; with that on PYTHONPATH `agentc` finds it by its entry points.
"""

from __future__ import annotations

import shutil
from pathlib import Path

_HERE = Path(__file__).parent


def install(folder: Path) -> Path:
    """The folder, with the package and what a package index would know of it."""
    package, known = folder / "counted_agents", folder / "counted_agents-1.0.dist-info"
    package.mkdir(parents=True)
    known.mkdir()
    (package / "__init__.py").write_text('"""Installed for a test."""\n')
    shutil.copy(_HERE / "backend.py", package)
    shutil.copy(_HERE.parent / "programs" / "counted.py", package / "job_count.py")
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: counted-agents\nVersion: 1.0\n")
    backends = [f"{kind}.counted = counted_agents.backend:{kind.upper()}" for kind in _KINDS]
    (known / "entry_points.txt").write_text("\n".join(["[agentc.backends]", *backends, ""]))
    return folder


_KINDS = ("dataset", "mix")
