"""Publishing: the manifest, and one atomic rename that makes an object exist.

Whatever kills the wrapper, the object is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping

from agentc.runtime.layout import MANIFEST, StoreLayout
from agentc.runtime.redact import Redactor
from agentc.runtime.staging import Staging, remove_tree

_CHUNK = 1 << 20


def publish(
    layout: StoreLayout,
    staging: Staging,
    manifest: Mapping[str, Any],
    redactor: Redactor,
) -> None:
    """Turn a staged job into the object. The caller holds the object's lock, and nobody writes
    to the staging directory any more."""
    whole = staging.publish
    remove_tree(whole)
    whole.mkdir()
    staging.data.rename(whole / "data")
    if staging.logs.is_dir():
        staging.logs.rename(whole / "logs")
    value = dict(manifest)
    value["files"] = hash_files(whole)
    text = redactor.clean_text(json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2))
    with (whole / MANIFEST).open("w", encoding="utf-8") as out:
        out.write(text + "\n")
        out.flush()
        os.fsync(out.fileno())
    for folder, _, _ in os.walk(str(whole)):
        _sync_directory(Path(folder))
    target = layout.object(staging.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and any(target.iterdir()):
        # Without a manifest it is no object: somebody removed a part of it by hand.
        torn = staging.path / "torn"
        remove_tree(torn)
        target.rename(torn)
    whole.rename(target)
    _sync_directory(target.parent)
    staging.remove()


def hash_files(folder: Path) -> Dict[str, str]:
    """Sha256 of every file under a folder, by relative path; each is synced to the disk."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[path.relative_to(folder).as_posix()] = sha256_of(path, sync=True)
    return found


def sha256_of(path: Path, sync: bool = False) -> str:
    """Sha256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            if not chunk:
                break
            digest.update(chunk)
        if sync:
            os.fsync(file.fileno())
    return digest.hexdigest()


def _sync_directory(path: Path) -> None:
    descriptor = os.open(str(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
