"""Where things lie in a store. Shared by the runtime, `agentc.store` and `agentc.run`.

An *object* is written `<kind>/<key>`; the layout is section 1 of docs/design/contracts.md.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

MANIFEST = "artifact.json"
ENVIRONMENTS_VARIABLE = "AGENTC_ENVIRONMENTS"
"""A folder for software environments that several stores share; default: inside the store."""


class StoreLayout:
    """Paths of a store. Nothing here touches the disk."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).absolute()

    def object(self, name: str) -> Path:
        """Folder of a published object."""
        return self.root / "objects" / name

    def manifest(self, name: str) -> Path:
        """The manifest whose existence means that the object is whole."""
        return self.object(name) / MANIFEST

    def data(self, name: str) -> Path:
        """The artifact itself."""
        return self.object(name) / "data"

    def staging(self, name: str) -> Path:
        """Folder of a job at work, or of one that was cut off."""
        return self.root / "staging" / name

    def lock(self, name: str) -> Path:
        """Lock file held by whoever works on the object."""
        return self.root / "locks" / (name.replace("/", "-") + ".lock")

    @property
    def environments(self) -> Path:
        """Folder of the software environments."""
        shared = os.environ.get(ENVIRONMENTS_VARIABLE)
        return Path(shared).absolute() if shared else self.root / "environments"

    def environment(self, lock_sha256: str) -> Path:
        """The Python environment built from a lock."""
        return self.environments / lock_sha256[:16]

    @property
    def code(self) -> Path:
        """Folder of the link directories that become the PYTHONPATH of jobs."""
        return self.root / "code"

    def is_published(self, name: str) -> bool:
        """Whether the object exists, whole. Raises OSError when the store cannot be read: what
        nobody may look at is not missing."""
        # The Path of a manifest costs ten times the look at the disk.
        path = f"{self.root}/objects/{name}/{MANIFEST}"
        try:
            os.stat(path)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            # Its folder was replaced or removed on another node, and this one has not noticed.
            if error.errno == errno.ESTALE:
                return False
            raise
        return True
