"""What to write where a spec names an existing Python or image as a software environment: agentc
installs from a lock, or starts an image."""

from __future__ import annotations

from pathlib import PurePath

NOTE = (
    "packages that are installed already (conda, `module load`, a virtual environment) cannot be "
    "used; `software:` takes the path of a lock"
)
FIX = (
    "pin the versions that you want in a lock and add hashes by `agentc env hash LOCK` (`--file "
    "WHEEL` for a build that no index has), or name an image of Apptainer, NGC's too, by a lock of "
    "one line: `# agentc: container IMAGE.sif sha256:...`. AGENTC_PYTHON_3_12=/path/to/python3.12 "
    "names the interpreter that environments are built with"
)
_OF_LOCKS = (".txt", ".lock", ".in")


def names_no_lock(file: str) -> bool:
    """Whether a path looks like an interpreter, a folder or an image."""
    return PurePath(file).suffix not in _OF_LOCKS
