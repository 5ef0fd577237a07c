"""In the place of `uv`, as verifiers calls it to prepare the script of a harness: the packages that
the script names have to be the lock's, and its interpreter is this one. `uv` would take them from
an index, in versions that no lock holds.

`prepare_home` puts it where verifiers looks for `uv` first. Standard library only.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_DEPENDENCIES = re.compile(r"^# dependencies = \[(.*?)\]$", re.MULTILINE)
_NAMED = re.compile(r'"([A-Za-z0-9._-]+)(?:\[[^"]*?\])?(?:==([^",;]+))?[^"]*"')


def main(words: Sequence[str]) -> str | None:
    """An error, or None. What is answered is printed."""
    plain = [word for word in words if not word.startswith("-")]
    if "--help" in words:
        print("--script")  # what verifiers asks whether it can
    elif plain[:1] == ["sync"] and len(plain) == 2:
        return missing_package(Path(plain[1]).read_text("utf-8"))
    elif plain[:2] == ["python", "find"]:
        print(sys.executable)
    else:
        return "this uv prepares scripts of harnesses, and does nothing else"
    return None


def missing_package(script: str) -> str | None:
    """What a script with inline metadata (PEP 723) asks for and this Python does not have."""
    head = _DEPENDENCIES.search(script)
    for name, pinned in _NAMED.findall(head[1] if head else ""):
        try:
            found = version(name)
        except PackageNotFoundError:
            return f"the lock of this job lacks {name}, which the script of a harness requests"
        if pinned and pinned.strip() != found:
            return f"the script of a harness requests {name}=={pinned}, and the lock has {found}"
    return None


def prepare_home(folder: Path, hidden: Iterable[str]) -> None:
    """Make `folder` the home of this process and of what it starts, before verifiers is imported;
    `hidden` variables, which hold secrets, are not theirs. Data sets stay where they were."""
    cache = Path(os.environ.get("HOME") or "/") / ".cache" / "huggingface"
    os.environ.setdefault("HF_HOME", str(cache))
    command = folder / ".local" / "bin" / "uv"
    command.parent.mkdir(parents=True, exist_ok=True)
    words = shlex.join([sys.executable, __file__])
    command.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    os.environ["HOME"] = str(folder)
    for name in hidden:
        os.environ.pop(name, None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
