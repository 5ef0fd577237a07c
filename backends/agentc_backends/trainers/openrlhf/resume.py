"""DeepSpeed's checkpoints in the job's work folder. DeepSpeed names the newest in a file `latest`,
which it writes after the checkpoint's own files but without waiting for the disk.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from agentc_backends.trainers.common.checkpoints import newest_whole, step_of

FOLDER = "checkpoints"
TAG = "global_step"
"""How the folders begin that OpenRLHF saves, each named after its step."""


def settle_checkpoints(work: Path) -> int:
    """Keep the newest whole checkpoint only, and let DeepSpeed find it. Its step, 0 for none."""
    folder = work / FOLDER
    newest = newest_whole(folder, f"{TAG}*")
    for path in folder.glob(f"{TAG}*"):
        if path != newest:
            shutil.rmtree(path)
    latest = folder / "latest"
    if newest is None:
        latest.unlink(missing_ok=True)
        return 0
    latest.write_text(newest.name, encoding="utf-8")
    return step_of(newest)
