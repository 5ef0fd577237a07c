"""The interpreter that code runs on in a box, and the files that it has to read there.

A box has nobody's rights, so an interpreter in a home directory that others may not enter (root's)
cannot be started in one: then it is the system's.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NOBODY = 65534
"""Who root becomes before a box starts."""
_SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache")
"""Libraries, and the loader's index of them."""
_ELSEWHERE = "/usr/bin/python3"
_PATIENCE_S = 20.0
_ASK = "import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix, sep='\\n')"


class BoxedInterpreter(NamedTuple):
    """`program` is started; of all files it can read `program` and what is below `readable`.
    `packages` are folders that modules are imported from, beside the standard library."""

    program: str
    readable: tuple[str, ...]
    packages: tuple[str, ...] = ()


class NoInterpreterError(Exception):
    """There is none that a box could start; says why. `remedy` would help."""

    remedy = (
        "a box has the rights of nobody: put the software where all may read it, or install "
        "python3 of the system"
    )


def boxed_interpreter(
    program: str | None = None, packages: tuple[str, ...] = ()
) -> BoxedInterpreter:
    """This one; or without a name, where a box cannot read the one that runs this, the system's.
    Raises NoInterpreterError."""
    unreadable: list[str] = []
    for candidate in [program] if program else [sys.executable, _ELSEWHERE]:
        found = _described(candidate)
        if found is None:
            unreadable.append(f"{candidate} does not start")
            continue
        needed = (*found.readable, *packages)
        closed = next((path for path in needed if not _open_to_boxes(path)), None)
        if closed is None:
            return found._replace(readable=needed, packages=packages)
        unreadable.append(f"{candidate}: a box may not read {closed}")
    raise NoInterpreterError(f"no Python for a box: {'; '.join(unreadable)}")


def _described(program: str) -> BoxedInterpreter | None:
    if program == sys.executable:
        real, prefix = str(Path(program).resolve()), sys.base_prefix
    else:
        try:
            told = subprocess.run(
                [program, "-I", "-S", "-c", _ASK],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
                check=True,
            ).stdout
            real, prefix = os.fsdecode(told).splitlines()
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
    own = (real, str(Path(prefix) / "lib"), str(Path(prefix) / "lib64"))
    needed = [path for path in (*own, *_SYSTEM) if Path(path).exists()]
    return BoxedInterpreter(real, tuple(_without_inner(needed)))


def _without_inner(paths: list[str]) -> Iterator[str]:
    """Without what lies below another one, or is the same."""
    for index, path in enumerate(paths):
        others = [*paths[:index], *(each for each in paths[index + 1 :] if each != path)]
        if not any((path + "/").startswith(other + "/") for other in others):
            yield path


def _open_to_boxes(path: str) -> bool:
    """Root's boxes are nobody's: everybody may read it, and enter each folder above. Else this
    process may."""
    if os.geteuid() != 0:
        return os.access(path, os.R_OK)
    try:
        real = Path(path).resolve()
        modes = [step.stat().st_mode for step in real.parents]
        return bool(real.stat().st_mode & stat.S_IROTH) and all(
            mode & stat.S_IXOTH for mode in modes
        )
    except OSError:
        return False
