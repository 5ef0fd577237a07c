"""A home of the job's own for verifiers, with a `uv` in it.

Harnesses are scripts whose packages `uv` would take from an index, in versions that no lock holds.
The command that verifiers looks for first, `~/.local/bin/uv`, is here `uv_command.py`, which gives
those scripts the job's own Python. Neighbour: `world.py`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from agentc_backends.agents.verifiers import uv_command


def settle(folder: Path, hidden: Iterable[str]) -> None:
    """Make `folder` the home of this process and of what it starts, before verifiers is imported;
    `hidden` variables, which hold secrets, are not theirs. Data sets stay where they were."""
    cache = Path(os.environ.get("HOME") or "/") / ".cache" / "huggingface"
    os.environ.setdefault("HF_HOME", str(cache))
    command = folder / ".local" / "bin" / "uv"
    command.parent.mkdir(parents=True, exist_ok=True)
    words = shlex.join([sys.executable, uv_command.__file__])
    command.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    os.environ["HOME"] = str(folder)
    for name in hidden:
        os.environ.pop(name, None)
