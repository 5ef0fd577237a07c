"""What packages that an environment is exported as have alike, whatever the format: a name, texts
that are filled in, the lease's program with its settings, and a folder that is whole or not there.

Formats: `openenv_package.py`, `verifiers_package.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc import __version__
from agentc.backend_api import EnvironmentBackend, LeaseDraft
from agentc.emit.bundle import copy_packages


class ExportError(Exception):
    """The environment cannot be a package of its own; the message says why."""


@dataclass(frozen=True, slots=True)
class ExportedEntry:
    """An entry that is exported: the declaration under its settings, the lease of its server, and
    the text of its software's lock."""

    backend: EnvironmentBackend
    lease: LeaseDraft
    lock: str

    def check(self) -> None:
        """Raises ExportError where it needs what no package brings along."""
        backend, lease = self.backend, self.lease
        if lease.port == "none" or {"url", "launch"} & set(lease.settings):
            raise ExportError(
                f"{backend.id} is a server of a third party, which has its own package"
            )
        if lease.needs or lease.secrets:
            raise ExportError(
                f"{backend.id} calls a model server under these settings, which no package brings "
                "along"
            )

    def words(self, name: str) -> dict[str, Any]:
        """What texts of a package of this name are filled in with."""
        low, high = self.backend.reward_range
        stem = name.removesuffix("_env")
        return {
            "name": name,
            "dashed": name.replace("_", "-"),
            "Name": "".join(part.capitalize() for part in stem.split("_")),
            "title": stem.replace("_", " ").capitalize(),
            "doc": self.backend.doc.replace('"', "'"),
            "version": f"0.1.{self.backend.version}",
            "release": f"agentc {__version__}",
            "backend": self.backend.id,
            "low": low,
            "high": high,
            "success": self.backend.success_at,
            "splits": ", ".join(f"`{split}`" for split in self.backend.splits),
            "split": self.backend.splits[0] if self.backend.splits else "train",
        }

    def write_world(self, folder: Path) -> None:
        """The program with its settings, and the packages that hold it."""
        held = {"program": [*self.lease.program], "settings": dict(self.lease.settings)}
        text = json.dumps(held, indent=1) + "\n"
        (folder / "environment.json").write_text(text, encoding="utf-8")
        copy_packages(folder / "packages", [self.lease.program])


def package_name(entry: str) -> str:
    """A Python name for an environment's."""
    return re.sub(r"[^a-z0-9]+", "_", entry.removeprefix("env.").lower()).strip("_") + "_env"


def write_texts(folder: Path, files: Mapping[str, str], words: Mapping[str, Any]) -> None:
    """Write each file's text, filled in."""
    for file, text in files.items():
        (folder / file).write_text(text.format(**words), encoding="utf-8")


def write_whole(target: Path, write: Callable[[Path], None]) -> int:
    """The number of files that `write` puts into a folder, which appears whole as `target`, or not
    at all. Raises ExportError, OSError and what `write` raises."""
    if target.exists():
        raise ExportError(f"{target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        write(draft)
        draft.chmod(0o755)
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return sum(path.is_file() for path in target.rglob("*"))
