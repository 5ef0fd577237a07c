"""Publishing: the manifest, and one atomic rename that makes an object exist.

Whatever kills the wrapper, the object is there whole or not at all; so it is where a file server
answers an error to a rename that it carried out.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.runtime.contracts.critic_contracts import PRIVATE
from agentc.runtime.machine.redact import Redactor
from agentc.runtime.store.claim import LostClaimError, ObjectLock
from agentc.runtime.store.content import sha256_of
from agentc.runtime.store.layout import MANIFEST, StoreLayout
from agentc.runtime.store.manifest import VERSION, manifest_text, shape_of
from agentc.runtime.store.modes import seal
from agentc.runtime.store.staging import Staging, remove_tree
from agentc.runtime.store.trouble import writing
from agentc.runtime.store.visible import visibility_timeout

_CHUNK = 1 << 20
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)
_RENAMES = 5


def publish(
    layout: StoreLayout,
    staging: Staging,
    manifest: Mapping[str, Any],
    redactor: Redactor,
    claim: ObjectLock | None = None,
) -> None:
    """Turn a staged job into the object. The caller holds the claim, and nobody writes to the
    staging directory any more. Raises StoreWriteError, and LostClaimError when the claim was
    taken over meanwhile."""
    whole = staging.publish
    with writing("the object " + staging.name, staging.path):
        remove_tree(whole)
        whole.mkdir()
        staging.data.rename(whole / "data")
        if staging.logs.is_dir():
            staging.logs.rename(whole / "logs")
        value = {**manifest, "manifest": VERSION, **shape_of(whole), "files": hash_files(whole)}
        value = json.loads(redactor.clean_text(json.dumps(value, ensure_ascii=False)))
        text = manifest_text(value)
        with (whole / MANIFEST).open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        seal(layout, whole, manifest.get("type") in PRIVATE)
        for folder, _, _ in os.walk(str(whole)):
            _sync_directory(Path(folder))
    if claim is not None and not claim.is_mine():
        raise LostClaimError(claim.name)
    target = layout.object(staging.name)
    with writing("the object " + staging.name, target.parent):
        _make_folder(target.parent)
        _put_in_place(whole, target, text, staging.path / "torn")
        _sync_directory(target.parent)
    if claim is not None and visibility_timeout(layout) > 0:
        claim.note_published()
    staging.remove()


def _put_in_place(whole: Path, target: Path, text: str, torn: Path) -> None:
    """Rename, until the object is there, ours or that of another with the same key."""
    for left in reversed(range(_RENAMES)):
        try:
            whole.rename(target)
            return
        except OSError as error:
            if _holds(target / MANIFEST, text):
                return  # carried out; the reply was lost, and the second try found nothing
            taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
            if left == 0 or not (taken or error.errno == errno.ESTALE):
                raise
        if (target / MANIFEST).exists():
            return
        if taken:
            # Without a manifest it is no object: somebody removed a part of it by hand.
            remove_tree(torn)
            target.rename(torn)


def _make_folder(path: Path) -> None:
    """With its entries in the folders above synced: what lies in a folder whose own name a power
    cut takes is lost."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    with suppress(FileExistsError):
        path.mkdir()
    _sync_directory(path.parent)


def _holds(manifest: Path, text: str) -> bool:
    try:
        return manifest.read_text(encoding="utf-8") == text
    except OSError:
        return False


def hash_files(folder: Path) -> dict[str, str]:
    """Sha256 of every file under a folder, by relative path; each is synced to the disk."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[path.relative_to(folder).as_posix()] = sha256_of(path, sync=True)
    return found


def _sync_directory(path: Path) -> None:
    descriptor = os.open(str(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:  # some file systems cannot, and need not
            raise
    finally:
        os.close(descriptor)
