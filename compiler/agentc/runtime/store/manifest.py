"""The text of a manifest: canonical, with a digest of itself, so that every changed byte shows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = 2
"""Since 2 a manifest has a `digest`, and tells `links` and `empty` folders where there are any."""


def manifest_text(value: Mapping[str, Any]) -> str:
    """The manifest as written."""
    bare = {name: entry for name, entry in value.items() if name != "digest"}
    return _text({**bare, "digest": _digest(bare)})


def damage_of(text: str) -> str | None:
    """What is wrong with the text of a manifest; None when it is as it was written. One of
    version 1 has no digest: it only has to be one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"cannot be read: {error}"
    if not isinstance(value, dict) or not isinstance(value.get("files"), dict):
        return "is no manifest"
    if value.get("manifest") == 1 and "digest" not in value:
        return None
    if value.get("digest") != _digest({k: v for k, v in value.items() if k != "digest"}):
        return "was changed (its digest differs)"
    return None if text == _text(value) else "was changed (it is laid out otherwise)"


def shape_of(folder: Path) -> dict[str, Any]:
    """What a folder holds beside files: where its links lead to, and folders without anything."""
    links: dict[str, str] = {}
    empty = []
    for place, folders, names in os.walk(str(folder)):
        for name in folders + names:
            path = Path(place, name)
            if path.is_symlink():
                links[path.relative_to(folder).as_posix()] = os.readlink(str(path))  # noqa: PTH115 (Python 3.8)
        if not folders and not names:
            empty.append(Path(place).relative_to(folder).as_posix())
    found: dict[str, Any] = {"links": links} if links else {}
    return {**found, "empty": sorted(empty)} if empty else found


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2) + "\n"


def _digest(bare: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(bare).encode("utf-8", "surrogatepass")).hexdigest()
