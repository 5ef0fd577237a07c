"""Writes an environment as a package of OpenEnv's format: manifest, client, server, Dockerfile.

The server in it is ours, started from the program and the settings of a lease. Neighbours:
`openenv_texts.py` (the files), `bundle.py` (packages), `cli/export.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path

from agentc import __version__
from agentc.backend_api import EnvironmentBackend, LeaseDraft
from agentc.emit import openenv_texts as texts
from agentc.emit.bundle import copy_packages

_PLAIN_LINES = re.compile(r"^# agentc: (?!python )", re.MULTILINE)


class ExportError(Exception):
    """The environment cannot be a package of its own; the message says why."""


def package_name(entry: str) -> str:
    """A Python name for an environment's."""
    return re.sub(r"[^a-z0-9]+", "_", entry.removeprefix("env.").lower()).strip("_") + "_env"


def write_openenv_package(
    target: Path, name: str, backend: EnvironmentBackend, lease: LeaseDraft, lock: str
) -> int:
    """The number of files written; `target` appears whole, or not at all. `backend` is the
    declaration under the entry's settings. Raises ExportError, BundleError, OSError."""
    _check(backend, lease, lock)
    if target.exists():
        raise ExportError(f"{target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _write(draft, name, backend, lease, lock)
        draft.chmod(0o755)
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return sum(path.is_file() for path in target.rglob("*"))


def _check(backend: EnvironmentBackend, lease: LeaseDraft, lock: str) -> None:
    """Raises ExportError."""
    if lease.port == "none" or {"url", "launch"} & set(lease.settings):
        raise ExportError(f"{backend.id} is a server of somebody else's, which has its own package")
    if lease.needs or lease.secrets:
        raise ExportError(
            f"{backend.id} asks a model server under these settings, which no package brings along"
        )
    if _PLAIN_LINES.search(lock):
        raise ExportError(
            f"the software environment `{backend.software.name}` is more than a list of pins, so "
            "no plain `pip install` makes it; `agentc env-serve` serves it where agentc is"
        )


def _write(
    draft: Path, name: str, backend: EnvironmentBackend, lease: LeaseDraft, lock: str
) -> None:
    low, high = backend.reward_range
    stem = name.removesuffix("_env")
    words = {
        "name": name,
        "dashed": name.replace("_", "-"),
        "Name": "".join(part.capitalize() for part in stem.split("_")),
        "title": stem.replace("_", " ").capitalize(),
        "doc": backend.doc.replace('"', "'"),
        "version": f"0.1.{backend.version}",
        "release": f"agentc {__version__}",
        "backend": backend.id,
        "low": low,
        "high": high,
        "success": backend.success_at,
        "splits": ", ".join(f"`{split}`" for split in backend.splits),
        "split": backend.splits[0] if backend.splits else "train",
    }
    files = {
        "openenv.yaml": texts.MANIFEST,
        "pyproject.toml": texts.PROJECT,
        "__init__.py": texts.INIT,
        "models.py": texts.MODELS,
        "client.py": texts.CLIENT,
        "README.md": texts.README,
    }
    for file, text in files.items():
        (draft / file).write_text(text.format(**words), encoding="utf-8")
    server = draft / "server"
    server.mkdir()
    (server / "__init__.py").write_text("", encoding="utf-8")
    (server / "app.py").write_text(texts.APP, encoding="utf-8")
    (server / "Dockerfile").write_text(texts.DOCKERFILE, encoding="utf-8")
    held = {"program": [*lease.program], "settings": dict(lease.settings)}
    (draft / "environment.json").write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    (draft / "requirements.lock").write_text(lock, encoding="utf-8")
    copy_packages(draft / "packages", [lease.program])
