"""In the place of `uv`, as verifiers calls it to prepare the script of a harness: the packages that
the script names have to be the lock's, and its interpreter is this one.

Standard library only; `home.py` puts it where verifiers looks for `uv` first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
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
        return lacking(Path(plain[1]).read_text("utf-8"))
    elif plain[:2] == ["python", "find"]:
        print(sys.executable)
    else:
        return "this uv prepares scripts of harnesses, and does nothing else"
    return None


def lacking(script: str) -> str | None:
    """What a script with inline metadata (PEP 723) asks for and this Python does not have."""
    head = _DEPENDENCIES.search(script)
    for name, pinned in _NAMED.findall(head[1] if head else ""):
        try:
            found = version(name)
        except PackageNotFoundError:
            return f"the lock of this job lacks {name}, which the script of a harness asks for"
        if pinned and pinned.strip() != found:
            return f"the script of a harness asks for {name}=={pinned}, and the lock has {found}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
