"""The machine that a job ran on, as manifests describe it: processor, memory, GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

_CARDS = Path("/proc/driver/nvidia/gpus")
_QUERY = "--query-gpu=name,memory.total,driver_version"
_PATIENCE_S = 10.0


class MachineProbe:
    """Starts asking for GPUs at once (nvidia-smi may take a second) and describes the machine
    later, when the answer has long been there."""

    def __init__(self) -> None:
        self._asked = _ask_for_gpus()
        self._known: dict[str, Any] | None = None
        self.given: list[str] = []
        """Those GPUs that the job had, by their names; [] where nobody gave any out."""

    def describe(self) -> dict[str, Any]:
        """`{"host", "system", "machine", "cpus", "cores", "cpu", "memory_mb", "gpus", ...}`.

        `cpus` are those that this process may use, `cores` all of the machine. With nvidia-smi,
        `gpu_memory_mb` and `gpu_driver` are there too; `gpus_given` where the job has some of them.
        """
        if self._known is None:
            self._known = {**_processor(), **self._gpus()}
        return {**self._known, "gpus_given": self.given} if self.given else self._known

    def _gpus(self) -> dict[str, Any]:
        if self._asked is not None:
            try:
                text, _ = self._asked.communicate(timeout=_PATIENCE_S)
                found = read_gpus(text.decode("utf-8", "replace"))
            except (subprocess.TimeoutExpired, OSError, ValueError):
                self._asked.kill()
                found = {}
            if found:
                return found
        return {"gpus": _cards()}


def read_gpus(text: str) -> dict[str, Any]:
    """nvidia-smi's answer (CSV without header and units) as fields; {} when it lists no GPU."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    rows = [row for row in rows if len(row) == 3 and row[1].isdigit()]
    if not rows:
        return {}
    return {
        "gpus": [name for name, _, _ in rows],
        "gpu_memory_mb": [int(memory) for _, memory, _ in rows],
        "gpu_driver": rows[0][2],
    }


def _ask_for_gpus() -> subprocess.Popen[bytes] | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        return subprocess.Popen(
            [program, _QUERY, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def _cards() -> list[str]:
    if not _CARDS.is_dir():
        return []
    models = (_first_field(card / "information", "Model") for card in sorted(_CARDS.iterdir()))
    return [model or "unknown" for model in models]


def _processor() -> dict[str, Any]:
    machine = os.uname()
    found: dict[str, Any] = {
        "host": machine.nodename,
        "system": f"{machine.sysname} {machine.release}",
        "machine": machine.machine,
        "cpus": _usable_cpus(),
        "cores": os.cpu_count() or 1,
    }
    model = _first_field(Path("/proc/cpuinfo"), "model name")
    if model:
        found["cpu"] = model
    memory = _first_field(Path("/proc/meminfo"), "MemTotal")
    if memory:
        found["memory_mb"] = int(memory.split()[0]) // 1024
    return found


def _usable_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _first_field(path: Path, name: str) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(name):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return None
