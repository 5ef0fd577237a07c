"""Which distributions a process has really imported, told by the process itself.

A lock pins what may be imported and `complete.json` lists what is installed; only the process
knows what it used. Every Python process of a job reports when it ends (`process_start.py` sees to
it), servers also once they are ready, since a session's jobs are published while their server
still runs.
"""

from __future__ import annotations

import atexit
import os
import sys
from itertools import takewhile

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing these, or pathlib, would cost every process of a job some 10 ms
    from pathlib import Path
    from typing import Any, Dict, List, Optional, Set, Tuple

FOLDER_VARIABLE = "AGENTC_IMPORTED"
"""Environment variable: the folder for reports. Without it nothing is reported."""


def report_at_exit() -> None:
    """Report when this process ends in order; does nothing outside of a run."""
    if os.environ.get(FOLDER_VARIABLE):
        atexit.unregister(report)  # once, whoever else asked for it in this process
        atexit.register(report)


def report() -> None:
    """Write what this process has imported so far to `<folder>/<pid>.json`."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    import json

    try:  # not `program.write_json`: its module imports what this one does not
        os.makedirs(folder, exist_ok=True)
        file = os.path.join(folder, "%d.json" % os.getpid())
        with open(file + ".tmp", "w", encoding="utf-8") as out:
            json.dump(describe_process(), out)
        os.replace(file + ".tmp", file)
    except Exception as error:  # a full disk, torn metadata: the artifact matters more than this
        print("agentc: what was imported is not recorded: %s" % error, file=sys.stderr)


def describe_process() -> Dict[str, Any]:
    """`{"python", "implementation", "imported": {distribution: version}, "gpu"?}`."""
    found: Dict[str, Any] = {
        # As `platform` says it, whose import costs each program 5 ms.
        "python": sys.version.split()[0],
        "implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(
            sys.implementation.name, sys.implementation.name
        ),
        "imported": imported_distributions(),
    }
    gpu = _gpu_use()
    if gpu is not None:
        found["gpu"] = gpu
    return found


def imported_distributions() -> Dict[str, str]:
    """Distributions of which a module is loaded in this process, with their versions.

    A distribution counts when a loaded file stands in its RECORD; names alone would not tell
    apart the parts of a namespace package, nor a module from the distribution that ships it.
    """
    loaded = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # setuptools puts this one into every process of an environment that has it.
        if isinstance(file, str) and not name.startswith("_distutils_hack"):
            loaded.add(os.path.realpath(file))
    found: Dict[str, str] = {}
    for folder in dict.fromkeys(os.path.realpath(entry) for entry in sys.path):
        base = folder + os.sep
        inside = {path[len(base) :] for path in loaded if path.startswith(base)}
        for metadata in _metadata_folders(folder) if inside else ():
            if not _records_one_of(inside, metadata):
                continue
            name, version = _name_and_version(metadata)
            # The first one on the path is the one that `import` takes.
            found.setdefault(name, version)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _metadata_folders(folder: str) -> List[str]:
    # Read as they are: importing importlib.metadata costs each process of a job some 15 ms.
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".dist-info"))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names]


def _records_one_of(files: Set[str], metadata: str) -> bool:
    try:
        with open(os.path.join(metadata, "RECORD"), encoding="utf-8") as record:
            return any(line.split(",", 1)[0].strip('"') in files for line in record)
    except OSError:
        return False


def _name_and_version(metadata: str) -> Tuple[str, str]:
    """As the headers of the METADATA file say, which end at its first empty line."""
    file = os.path.join(metadata, "METADATA")
    with open(file, encoding="utf-8", errors="replace") as lines:
        headers = {
            name: value.strip()
            for name, colon, value in (line.partition(":") for line in takewhile(str.strip, lines))
            if colon
        }
    return headers["Name"], headers["Version"]


def read_reports(folder: Path) -> Dict[str, Any]:
    """The reports of all processes of a program as one; {} when there is none.

    Where processes differ (they should not) the versions stand side by side, `1.0, 1.1`.
    """
    import json

    reports = []
    for path in sorted(folder.glob("*.json")):
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("imported"), dict):
            reports.append(value)
    if not reports:
        return {}
    merged: Dict[str, Any] = {"python": _joined(one.get("python") for one in reports)}
    names = sorted({name for one in reports for name in one["imported"]}, key=str.lower)
    merged["imported"] = {
        name: _joined(one["imported"].get(name) for one in reports) for name in names
    }
    gpus = [one["gpu"] for one in reports if isinstance(one.get("gpu"), dict)]
    if gpus:
        merged["gpu"] = max(gpus, key=lambda gpu: float(gpu.get("max_memory_mb") or 0))
    return merged


def _joined(values: Any) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values if value is not None))


def _gpu_use() -> Optional[Dict[str, Any]]:
    """What torch did on GPUs: CUDA version, devices, and the peaks of memory (MiB) on one of them:
    of what tensors took, and of what its allocator held for them. None when this process has not
    used one. Imports nothing."""
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        count = torch.cuda.device_count()
        taken = max(torch.cuda.max_memory_allocated(index) for index in range(count))
        held = max(torch.cuda.max_memory_reserved(index) for index in range(count))
        return {
            "cuda": torch.version.cuda,
            "devices": [torch.cuda.get_device_name(index) for index in range(count)],
            "max_memory_mb": round(taken / 2**20, 1),
            "max_reserved_mb": round(held / 2**20, 1),
        }
    except Exception:  # a driver that fails at the end of a job must not change its outcome
        return None
