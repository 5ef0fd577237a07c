"""Permissions in a store: its root folder says who shares it, and what is made inside follows.

A root that its group may write to (`chmod 2775`) is a store of that group: files and folders of
jobs are made so that every member can go on with another's staged work.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agentc.runtime.store.layout import StoreLayout


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
