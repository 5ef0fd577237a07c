"""Where a plan is compiled to for a run: `plans/<name>/` beside the store.

Jobs read plan.json when they start, so a run must never replace the plan of another one.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentc.runtime.layout import StoreLayout
from agentc.store.paths import plans_folder

_LOCK = ".run.lock"


@contextmanager
def claim_plan_folder(layout: StoreLayout, name: str, plan_text: str) -> Iterator[Path]:
    """A folder for this plan, held while the block runs: `plans/<name>`, or, while a run of
    another plan of that name is at work there, `plans/<name>-<digest>`. Runs of one plan share.
    """
    digest = hashlib.sha256(plan_text.encode("utf-8")).hexdigest()[:8]
    for folder in (plans_folder(layout) / name, plans_folder(layout) / f"{name}-{digest}"):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not _holds(folder, plan_text):
                    continue
                fcntl.flock(lock, fcntl.LOCK_SH)
            else:
                (folder / "plan.json").write_text(plan_text, encoding="utf-8")
                # From here on others may join, if their plan is this one.
                fcntl.flock(lock, fcntl.LOCK_SH)
            yield folder
            return
    raise RuntimeError(f"{folder} is used by a run of another plan")


def _holds(folder: Path, plan_text: str) -> bool:
    try:
        return (folder / "plan.json").read_text(encoding="utf-8") == plan_text
    except OSError:
        return False
