"""The two kinds of box, as commands: what is started, and around what.

bubblewrap gives a process namespaces of its own: no other files, processes or network are there.
Landlock (`lockdown.py`) takes rights from a process that stays where all the others are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from agentc.runtime.sandbox.interpreter import NOBODY, BoxedInterpreter

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
