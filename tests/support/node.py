"""Nodes of a cluster in name spaces of this machine: each has a host name, processes and a mount of
its own (`late_mount.py`). Needs root, unshare, nsenter and /dev/fuse."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.patience import PATIENCE_S, wait_for

LOCK = Path(__file__).parent / "late_mount.lock"


def why_impossible() -> str | None:
    """Why this machine can have no nodes; None when it can."""
    if os.getuid() != 0:
        return "needs root, for name spaces and mounts"
    if not Path("/dev/fuse").exists():
        return "needs /dev/fuse"
    missing = [name for name in ("unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"needs {missing[0]} (util-linux)"
    if not any(Path("/usr/lib").rglob("libfuse*.so*")):
        return "needs libfuse (Debian: libfuse3-3)"
    words = ["unshare", "--mount", "--uts", "--pid", "--fork", "true"]
    if subprocess.run(words, check=False, capture_output=True).returncode != 0:
        return "the kernel lets nobody make name spaces here"
    return None


class Node:
    """A node; its mount of `backing` lies at `shared`, the same path on all of them."""

    def __init__(self, python: Path, name: str, backing: Path, shared: Path, delay: float) -> None:
        self.name = name
        self.shared = shared
        self.faults = backing.with_name(f"faults-{name}")
        backing.mkdir(exist_ok=True)
        shared.mkdir(exist_ok=True)
        mount = Path(__file__).with_name("late_mount.py")
        # The shell is the first process there: it also takes leave of those without a parent.
        serve = f'hostname {name} && mount -t proc proc /proc && {{ "$@" & wait; }}'
        self._process = subprocess.Popen(
            ["unshare", "--mount", "--uts", "--pid", "--fork", "sh", "-c", serve, "sh",
             str(python), str(mount), str(backing), str(shared), str(delay), str(self.faults)],
        )  # fmt: skip
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        self._first = int(wait_for(lambda: children.read_text().split())[0])
        wait_for(lambda: self.run("mountpoint", "-q", str(shared)).returncode == 0)

    def argv(self, *words: str) -> list[str]:
        """A command as one of this node."""
        return ["nsenter", "-t", str(self._first), "--mount", "--uts", "--pid", *words]

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command on it to its end."""
        return subprocess.run(
            self.argv(*words), capture_output=True, text=True, check=False, timeout=PATIENCE_S,
            env={**os.environ, **variables},
        )  # fmt: skip

    def start(self, words: Sequence[str], **variables: str) -> subprocess.Popen[str]:
        """Start a command on it."""
        return subprocess.Popen(
            self.argv(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **variables},
        )  # fmt: skip

    def power_off(self) -> None:
        """End everything on it at once, its mount too."""
        if self._process.poll() is None:
            os.kill(self._first, signal.SIGKILL)
        self._process.wait(timeout=PATIENCE_S)


def fuse_python(folder: Path) -> Path:
    """A Python that has what `late_mount.py` imports, from the lock beside it."""
    found = subprocess.run(
        [sys.executable, "-m", "agentc.runtime.build_software", str(LOCK), "--print-python"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "AGENTC_SOFTWARE": str(folder)},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return Path(found.stdout.split()[-1])
