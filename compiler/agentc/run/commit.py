"""The commit that a run was of: what git has checked out where the spec lies.

`record.py` keeps it in the state of the run, `report_header.py` shows it.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any


def commit_of(spec: Path) -> dict[str, Any] | None:
    """The commit that is checked out where the spec lies, `{"id", "has_spec"}`: whether the spec
    is in it as it is. None outside of a repository.

    Only names are asked of git: no hook, filter or monitor of a stranger's repository is run."""
    try:
        text = spec.read_bytes()
        words = ["git", "-C", str(spec.absolute().parent), "rev-parse", "HEAD"]
        done = subprocess.run(
            [*words, f"HEAD:./{spec.name}"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    lines = done.stdout.split()
    if not lines or len(lines[0]) not in (40, 64) or not lines[0].isalnum():
        return None
    make = hashlib.sha1 if len(lines[0]) == 40 else hashlib.sha256
    blob = make(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest()
    return {"id": lines[0], "has_spec": lines[1:] == [blob]}
