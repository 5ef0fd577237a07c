"""The two kinds of box, as commands, and the interpreter that code runs on in them.

bubblewrap gives a process namespaces of its own: no other files, processes or network are there.
Landlock (`agentc.program.lockdown`) takes rights from a process that stays where all others are. A
box has nobody's rights: an interpreter that only root may enter is replaced by the system's.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


KINDS = ("bubblewrap", "landlock")
"""The better one first."""
_ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
"""All that code sees of an environment. Equal code has to do the same each time, sets included."""
_NEWEST_LANDLOCK = 7
"""The last version whose rights `lockdown.py` knows."""
_DISABLES_NESTED = (0, 8)
"""Of bubblewrap, since when it takes --disable-userns. Before, the filter alone refuses them."""


class CodeBox(NamedTuple):
    """A kind of box that works here. `version` is bubblewrap's or Landlock's."""

    kind: str
    version: str
    interpreter: BoxedInterpreter

    def facts(self) -> dict[str, str]:
        """For a manifest: what code ran in."""
        return {"kind": self.kind, "version": self.version, "python": self.interpreter.program}


def environment() -> dict[str, str]:
    """The variables of a boxed process."""
    return dict(_ENVIRONMENT)


def command(box: CodeBox, told: int | None) -> list[str]:
    """The words before the interpreter's own. `told` is the descriptor to which bubblewrap says
    which process it started."""
    words = _as_nobody()
    if box.kind == "bubblewrap":
        words += _bubblewrap(box, told)
    return words


def landlock_orders(box: CodeBox) -> dict[str, Any] | None:
    """What `lockdown.py` needs for Landlock; None in another kind of box."""
    if box.kind != "landlock":
        return None
    version = min(int(box.version), _NEWEST_LANDLOCK)
    return {"version": version, "readable": list(box.interpreter.readable)}


def bubblewrap_version() -> str | None:
    """`0.8.0`; None where it is not installed. Raises OSError where it does not answer."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    try:
        told = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20.0,
        )
    except subprocess.TimeoutExpired:
        raise OSError("`bwrap --version` does not answer") from None
    return told.stdout.decode("ascii", "replace").strip().rpartition(" ")[2]


def _as_nobody() -> list[str]:
    """Where root stays root, what a box forgets to take away would be everything."""
    if os.geteuid() != 0:
        return []
    who = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # By their paths: what is started has no PATH to look in.
    return [shutil.which("setpriv") or "setpriv", *who, "--inh-caps=-all", "--"]


def _bubblewrap(box: CodeBox, told: int | None) -> list[str]:
    words = [shutil.which("bwrap") or "bwrap"]
    words += ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    words += ["--as-pid-1", "--cap-drop", "ALL", "--hostname", "box"]
    words += ["--uid", str(NOBODY), "--gid", str(NOBODY)]
    if _numbers(box.version) >= _DISABLES_NESTED:
        words.append("--disable-userns")
    for path in box.interpreter.readable:
        # On most systems /lib leads to /usr/lib.
        if Path(path).is_symlink():
            words += ["--symlink", os.readlink(path), path]  # noqa: PTH115 - Python 3.8
        else:
            words += ["--ro-bind", path, path]
    for device in ("/dev/null", "/dev/urandom"):
        words += ["--dev-bind", device, device]
    words += ["--remount-ro", "/", "--chdir", "/"]
    if told is not None:
        words += ["--info-fd", str(told)]
    return words


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
