"""Writes an environment as a package of verifiers' format: a taskset and the environment that plays
its tasks, in the process of whoever plays.

The world in it is ours, opened from the program and the settings of a lease. Neighbours:
`verifiers_texts.py` (the files), `environment_package.py`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agentc.emit import verifiers_texts as texts
from agentc.emit.environment_package import ExportedEntry, ExportError, write_texts, write_whole

_PROBE = """\
import sys
from pathlib import Path
here = Path(sys.argv[1])
sys.path.insert(0, str(here / "packages"))
from agentc_backends.agents.exported.world import ExportedWorld
for split, tasks in ExportedWorld(here / "environment.json").splits().items():
    print(split, len(tasks), sep="\\t")
"""


def write_verifiers_package(target: Path, name: str, entry: ExportedEntry) -> int:
    """The number of files written; `target` appears whole, or not at all. The world is opened once
    from what was written. Raises ExportError, BundleError, OSError."""
    entry.check()
    if not entry.lease.inside:
        raise ExportError(
            f"{entry.backend.id} needs its server under these settings, and a taskset plays in the "
            "process of verifiers; `agentc export openenv` writes a package with a server"
        )
    return write_whole(target, lambda draft: _write(draft, name, entry))


def _write(draft: Path, name: str, entry: ExportedEntry) -> None:
    module = draft / name
    module.mkdir()
    entry.write_world(module)
    splits = _opened(module)
    words = entry.words(name) | {
        "split": next(iter(splits)),
        "split_names": ", ".join(f'"{split}"' for split in splits),
        "tasks": ", ".join(f"`{split}` ({count})" for split, count in splits.items()),
        "max_turns": entry.backend.max_turns,
    }
    write_texts(draft, {"pyproject.toml": texts.PROJECT, "README.md": texts.README}, words)
    write_texts(module, {"__init__.py": texts.INIT, "taskset.py": texts.TASKSET}, words)


def _opened(module: Path) -> dict[str, int]:
    """The numbers of tasks of the splits, as a Python says that has its standard library alone:
    what else a world needs would have to be in verifiers' environment. Raises ExportError."""
    command = [sys.executable, "-I", "-S", "-c", _PROBE, str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        raise ExportError(
            "the world cannot be opened from a package that has the standard library alone: "
            + "".join(last).rpartition("Error: ")[2]
            + "; `agentc export openenv` brings packages along"
        )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {split: int(count) for split, count in lines}
