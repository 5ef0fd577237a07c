"""Writes an environment as a package of OpenEnv's format: manifest, client, server, Dockerfile.

The server in it is ours, started from the program and the settings of a lease. Neighbours:
`openenv_texts.py` (the files), `environment_package.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

from agentc.emit import openenv_texts as texts
from agentc.emit.environment_package import ExportedEntry, ExportError, write_texts, write_whole

_PLAIN_LINES = re.compile(r"^# agentc: (?!python )", re.MULTILINE)


def write_openenv_package(target: Path, name: str, entry: ExportedEntry) -> int:
    """The number of files written; `target` appears whole, or not at all. Raises ExportError,
    BundleError, OSError."""
    entry.check()
    if _PLAIN_LINES.search(entry.lock):
        raise ExportError(
            f"the software environment `{entry.backend.software.name}` is more than a list of "
            "pins, so no plain `pip install` makes it; `agentc env-serve` serves it where agentc is"
        )
    return write_whole(target, lambda draft: _write(draft, name, entry))


def _write(draft: Path, name: str, entry: ExportedEntry) -> None:
    files = {
        "openenv.yaml": texts.MANIFEST,
        "pyproject.toml": texts.PROJECT,
        "__init__.py": texts.INIT,
        "models.py": texts.MODELS,
        "client.py": texts.CLIENT,
        "README.md": texts.README,
    }
    write_texts(draft, files, entry.words(name))
    server = draft / "server"
    server.mkdir()
    (server / "__init__.py").write_text("", encoding="utf-8")
    (server / "app.py").write_text(texts.APP, encoding="utf-8")
    (server / "Dockerfile").write_text(texts.DOCKERFILE, encoding="utf-8")
    (draft / "requirements.lock").write_text(entry.lock, encoding="utf-8")
    entry.write_world(draft)
