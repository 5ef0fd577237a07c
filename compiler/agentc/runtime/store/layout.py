"""Where things lie in a store, and who may read and write them.

An *object* is written `<kind>/<key>`; the layout is section 1 of docs/design/contracts.md. A root
that its group may write to (`chmod 2775`) is a store of that group: what jobs make inside can be
used and resumed by every member.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

MANIFEST = "artifact.json"
SOFTWARE_VARIABLE = "AGENTC_SOFTWARE"
"""A folder for software stacks that several stores share; default: inside the store."""
_RENAMED = {"AGENTC_ENVIRONMENTS": SOFTWARE_VARIABLE}


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
    def software(self) -> Path:
        """Folder of the software stacks."""
        shared = os.environ.get(SOFTWARE_VARIABLE)
        return Path(shared).absolute() if shared else self.root / "software"

    def software_stack(self, lock_sha256: str) -> Path:
        """The software stack built from a lock."""
        return self.software / lock_sha256[:16]

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


def renamed_variable(environ: Mapping[str, str]) -> str | None:
    """What to say of a variable that is set under a former name, None where none is."""
    for old, new in _RENAMED.items():
        if environ.get(old) and not environ.get(new):
            return f"{old} was renamed to {new}: export {new}={environ[old]}, and unset {old}"
    return None


def adopt_umask(layout: StoreLayout) -> None:
    """In a store that a group writes to, let this process and its children do so too."""
    try:
        mode = layout.root.stat().st_mode
    except OSError:
        return
    if mode & stat.S_IWGRP:
        before = os.umask(0o077)
        os.umask(before & ~(mode & 0o077))


def keep_private(layout: StoreLayout, *folders: Path) -> None:
    """Close folders of a job that was given secrets to other users, until it is published; in a
    store that a group writes to they stay open to its members, who may have to go on with it."""
    if layout.root.stat().st_mode & stat.S_IWGRP:
        return
    for folder in folders:
        folder.chmod(0o700)


def seal(layout: StoreLayout, folder: Path, private: bool = False) -> None:
    """Modes of an object that is about to be published: files are read-only, and readable for
    those who can read the store, whatever umask their program had. The data of what is `private`
    only its owner reads, and in a store that a group writes to, whose jobs go on with it, that
    group."""
    share = layout.root.stat().st_mode
    own = 0o040 if share & stat.S_IWGRP else 0
    for place, _, names in os.walk(str(folder)):
        hidden = private and folder / "data" in (Path(place), *Path(place).parents)
        _change(place, lambda mode: mode | 0o700 | (share & 0o077))
        for name in names:
            if hidden:
                _change(place + "/" + name, lambda mode: mode & 0o400 | share & own)
            else:
                _change(place + "/" + name, lambda mode: (mode | share & 0o044) & ~0o222)


def _change(path: str, wanted: Callable[[int], int]) -> None:
    state = os.lstat(path)
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        return
    mode = stat.S_IMODE(state.st_mode)
    new = wanted(mode)
    if new != mode:
        # What another user of the group made cannot be changed, and need not be.
        with suppress(PermissionError):
            Path(path).chmod(new)
