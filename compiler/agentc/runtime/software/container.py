"""Software stacks that are container images, run by Apptainer (or Singularity).

The lock then holds one line, `# agentc: container SOURCE`, with the image's digest in it; the image
brings Python and all packages. Programs start as `apptainer exec ... IMAGE python3 -m ...`. Flags
are those of apptainer-exec(1) and apptainer-pull(1), versions 1.0 to 1.4.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.software.job_software import IMAGE
from agentc.runtime.software.lock_text import Container
from agentc.runtime.store.digests import sha256_of

ENGINES = ("apptainer", "singularity")
IMAGES_VARIABLE = "AGENTC_IMAGES"
"""Folders with image files, separated like those of PATH."""
_NVIDIA, _AMD = Path("/proc/driver/nvidia/version"), Path("/dev/kfd")
_FOLDERS = ("AGENTC_SPEC_DIR", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "TMPDIR")
_DESCRIBE = """\
import json, platform, sys
if sys.version_info < (3, 8):
    sys.exit("its python3 is %s, and 3.8 or newer is needed" % platform.python_version())
from importlib.metadata import distributions
found = {each.metadata["Name"]: each.version for each in reversed(list(distributions()))}
print(json.dumps({"python": platform.python_version(), "versions": found}))
"""


class ContainerError(Exception):
    """The image cannot be had or used here; the message says why, and what may help."""


def find_engine() -> str:
    """The path of apptainer or singularity. Raises ContainerError."""
    for name in ENGINES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise ContainerError(
        "it is a container image, and this machine has neither apptainer nor singularity"
        " on PATH ({})\nhelp: on clusters it is often a module (`module load apptainer`);"
        " else install it (apptainer.org, or `conda install -c conda-forge apptainer`), or use a"
        " lock of packages instead".format(os.environ.get("PATH", ""))
    )


def exec_command(image: Path, binds: Iterable[str] = ()) -> list[str]:
    """The words that start Python in an image: flags for the GPUs of this machine, and the
    folders of this machine that programs see at their own paths. Raises ContainerError."""
    words = [find_engine(), "exec"]
    if _NVIDIA.exists():
        words.append("--nv")
    elif _AMD.exists():
        words.append("--rocm")
    for bind in _outermost(binds):
        if any(letter in bind for letter in ":,"):
            raise ContainerError(f"a folder with `:` or `,` in its path cannot be bound: {bind}")
        words += ["--bind", bind]
    return [*words, str(image), "python3"]


def folders_to_bind(store: Path, code: Path) -> list[str]:
    """What programs need of this machine: the store, the packages that the code directory links
    to, the spec's folder and caches. (Apptainer itself binds home, /tmp and the like.)"""
    found = [str(store)]
    found += [os.path.realpath(str(link)) for link in sorted(code.iterdir()) if link.is_symlink()]
    found += [os.environ[name] for name in _FOLDERS if os.environ.get(name)]
    return [os.path.realpath(path) for path in found if Path(path).exists()]


def provide_image(container: Container, directory: Path) -> list[str]:
    """Put the image, or a link to it, into the stack's folder. Returns the command line
    that has to be run for that, [] for none. Raises ContainerError."""
    image = directory / IMAGE
    if container.pulled:
        return [find_engine(), "pull", "--force", str(image), container.source]
    assert container.sha256 is not None
    file = _find_file(container.source)
    digest = sha256_of(file)
    if digest != container.sha256:
        raise ContainerError(
            f"{file} is another image than the one that the lock names: its sha256 is {digest}"
        )
    image.symlink_to(file.resolve())
    return []


def describe_image(directory: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """`{"python", "versions"}` of an image, asked of its own Python. Raises ContainerError."""
    argv = [*exec_command(directory / IMAGE), "-c", _DESCRIBE]
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=dict(variables),
        check=False,
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout.decode("utf-8").splitlines()[-1])
    except (ValueError, IndexError):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-5:]
        raise ContainerError(
            "the image's python3 cannot be used:\n{}".format(
                "\n".join("  | " + line for line in last)
            )
        ) from None
    return found


def _find_file(name: str) -> Path:
    """An image file by its name: in the folders of AGENTC_IMAGES, else beside the spec."""
    folders = [part for part in os.environ.get(IMAGES_VARIABLE, "").split(os.pathsep) if part]
    folders.append(os.environ.get("AGENTC_SPEC_DIR") or ".")
    for folder in folders:
        if (Path(folder) / name).is_file():
            return Path(folder) / name
    raise ContainerError(
        "there is no image {} in {}\nhelp: export {}=/a/folder/with/images".format(
            name, " or ".join(folders), IMAGES_VARIABLE
        )
    )


def _outermost(paths: Iterable[str]) -> list[str]:
    """Each path once, less those that lie in another one."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(path.startswith(outer.rstrip("/") + "/") for outer in kept):
            kept.append(path)
    return kept
