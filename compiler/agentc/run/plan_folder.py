"""Where a plan is compiled to for a run: `plans/<label>/` beside the store.

Jobs read plan.json when they start, so a run must never replace the plan of another one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from agentc.runtime.store.file_system import visibility_timeout
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.object_lock import FLOCK_VARIABLE, NO_FLOCK
from agentc.store.paths import plans_folder

_LOCK = ".run.lock"
"""Held, shared, by the runs at work; in it the digest of their plan."""


@contextmanager
def claim_plan_folder(layout: StoreLayout, name: str, plan_text: str) -> Iterator[Path]:
    """A folder for this plan, held while the block runs: `plans/<name>`, or, while a run of
    another plan of that name is at work there, `plans/<name>-<digest>`. Runs of one plan share.
    Where nothing can be locked, and on file systems of several machines, some of which keep locks
    within one, each plan has a folder of the second kind.
    """
    digest = hashlib.sha256(plan_text.encode("utf-8")).hexdigest()
    shared, own = plans_folder(layout) / name, plans_folder(layout) / f"{name}-{digest[:8]}"
    for folder in (own,) if visibility_timeout(layout) > 0 else (shared, own):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _LOCK).open("a+", encoding="utf-8") as lock:
            locked = _lock(lock, digest)
            if locked or (locked is None and folder == own):
                yield folder
                return
    raise RuntimeError(f"{own} is used by a run of another plan")


def _lock(lock: TextIO, digest: str) -> bool | None:
    """Whether the folder is this plan's as long as the file is open; None where locks do not
    work."""
    if os.environ.get(FLOCK_VARIABLE) == "off":
        return None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody is at work: perhaps with this very plan
        else:
            lock.truncate(0)
            lock.write(digest)
            lock.flush()
        # This gives up the first lock before it takes the second, so another run may come between.
        fcntl.flock(lock, fcntl.LOCK_SH)
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
        return None
    lock.seek(0)
    return lock.read() == digest
