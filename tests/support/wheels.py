"""Wheels for tests: small, local, and real to pip."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], metadata: str = ""
) -> Path:
    """A pure Python wheel with these files; `metadata` are further header lines."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        contents = {
            **files,
            f"{info}/METADATA": head + metadata,
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = ""
        for file, text in contents.items():
            archive.writestr(file, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record += f"{file},sha256={digest.decode().rstrip('=')},{len(text.encode())}\n"
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


def write_sdist(folder: Path, name: str, version: str, script: str) -> Path:
    """A source distribution with a build script of its own, which needs nothing to be built:
    `script` runs while it is, as any setup.py would."""
    top = f"{name}-{version}"
    backend = (
        "import pathlib, sys\n"
        "sys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
        "from wheels import write_wheel\n"
        "def build_wheel(folder, settings=None, metadata=None):\n"
        f"    exec({script!r})\n"
        f"    return write_wheel(pathlib.Path(folder), {name!r}, {version!r}, {{}}).name\n"
    )
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n',
        "backend.py": backend,
        "wheels.py": Path(__file__).read_text(),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }
    path = folder / f"{top}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{file}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def pinned(name: str, version: str, file: Path) -> str:
    """The requirement of a lock that takes this version, with the hash of its file."""
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def addressed(name: str, file: Path) -> str:
    """The requirement of a lock that takes this file from its place, with its hash."""
    return f"{name} @ file://{file} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
